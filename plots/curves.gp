# Curves. Of each variant the data has three blocks: mean and band, seeds, ends of runs that diverged.
data = name.'.tsv'
set xrange [x_low:x_high]
set yrange [y_low:y_high]
if (logarithmic) { set logscale y }
if (value_tics ne '') { eval 'set ytics ('.value_tics.')' }
set xlabel x_label noenhanced
if (nothing) { unset tics; unset grid; unset xlabel }
do for [i = 1:variants] {
    from_x = sample_x[i] / width; to_x = (sample_x[i] + sample) / width; at_x = (from_x + to_x) / 2; at_y = sample_y[i] / height
    if (end_y[i] == end_y[i]) {
        set arrow 2 * i from screen from_x, screen at_y to screen to_x, screen at_y nohead linewidth 4 linecolor rgb color[i] dashtype dash[i]
        set label texts + i '' at screen at_x, screen at_y point pointtype mark[i] pointsize 0.9 linecolor rgb color[i]
        if (leaders) {
            set arrow 2 * i + 1 from first end_x[i], first end_y[i] to screen from_x, screen at_y nohead linewidth 1.5 linecolor rgb faint[i]
        }
    }
}
mean(i) = 3 * i - 2
seeds(i) = 3 * i - 1
crosses(i) = 3 * i
# What reaches past the frame is drawn to the frame: gnuplot fills a band whose corner lies outside beyond its bounds.
within(y) = y > y_high ? y_high : y < y_low ? y_low : y
do for [format in formats] {
    eval terminal_of(format)
    do for [i = 1:texts] { eval label_of(i) }
    set ylabel value_of(format) noenhanced font sprintf('sans-serif,%g', value_size)
    set output prefix.name.'.'.format
    plot for [i = 1:variants] data index mean(i) using ($1 / x_unit):(within($3)):(within($4)) with filledcurves fillcolor rgb color[i], \
         for [i = 1:variants] data index seeds(i) using ($1 / x_unit):2 with lines linewidth 1.5 linecolor rgb faint[i] dashtype dash[i], \
         for [i = 1:variants] data index mean(i) using ($1 / x_unit):2 with lines linewidth (smooth ? 1.5 : marks ? 4 : 2.5) linecolor rgb (smooth ? faint[i] : color[i]) dashtype dash[i], \
         for [i = 1:variants] data index mean(i) using ($1 / x_unit):(smooth ? $6 : NaN) with lines linewidth 4 linecolor rgb color[i] dashtype dash[i], \
         for [i = 1:variants] data index mean(i) using ($1 / x_unit):(marks && !smooth ? $2 : NaN) with points pointtype mark[i] pointsize 0.9 linecolor rgb color[i], \
         for [i = 1:variants] data index crosses(i) using ($1 / x_unit):(within($2)) with points pointtype 2 pointsize 1.3 linewidth 4 linecolor rgb color[i], \
         -1e300
    unset output
}
