# Final values, or their differences to the baseline: a row a variant. The data has two blocks: seeds, means with their intervals; column 5 is the row.
data = name.'.tsv'
rows_height = top - bottom
set xrange [x_low:x_high]
set yrange [0:rows_height]
if (logarithmic) { set logscale x }
if (value_tics ne '') { eval 'set xtics ('.value_tics.')' }
unset ytics
set grid noytics
set border 1
if (nothing) { unset xtics; unset grid }
if (margin == margin) {
    set object 1 rectangle from first (-margin < x_low ? x_low : -margin), graph 0 to first (margin > x_high ? x_high : margin), graph 1 \
        behind fillcolor rgb '#E8E8E8' fillstyle solid 1 noborder
}
if (reference == reference) {
    set arrow 1 from first reference, graph 0 to first reference, graph 1 nohead linewidth 2 linecolor rgb '#000000' dashtype 2
}
do for [i = 1:variants] {
    set arrow i + 1 from graph 0, first row_y[i] to graph 1, first row_y[i] nohead linewidth 1 linecolor rgb '#DADADA'
}
row(i) = row_y[int(i)]
clip_low(x) = x < x_low ? x_low : x
clip_high(x) = x > x_high ? x_high : x
do for [format in formats] {
    eval terminal_of(format)
    do for [i = 1:texts] { eval label_of(i) }
    set xlabel value_of(format) noenhanced font sprintf('sans-serif,%g', value_size)
    set output prefix.name.'.'.format
    plot for [i = 1:variants] data index 2 using ($5 == i ? clip_low($2) : NaN):(row($5) + 7):(clip_high($3) - clip_low($2)):(0) with vectors nohead linewidth 4 linecolor rgb color[i], \
         for [i = 1:variants] data index 1 using ($5 == i ? $1 : NaN):(row($5) - 9) with points pointtype 6 pointsize 0.9 linewidth 2 linecolor rgb color[i], \
         for [i = 1:variants] data index 2 using ($5 == i ? $1 : NaN):(row($5) + 7) with points pointtype mark[i] pointsize 1 linecolor rgb color[i], \
         -1e300
    unset output
}
