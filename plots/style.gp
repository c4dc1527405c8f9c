# The look all figures share: frame, axes, how texts are placed and formats set up.
if (!exists('formats')) formats = 'png svg'
if (!exists('prefix')) prefix = ''
set encoding utf8
set decimalsign '.'
set datafile separator tab
unset key
set style fill transparent solid 0.16 noborder
set clip two
set border 3 linewidth 1.5 linecolor rgb '#404040'
set grid ytics xtics linewidth 1 linecolor rgb '#DADADA' dashtype 1
set tics out nomirror scale 0.6 textcolor rgb '#000000'
set lmargin at screen left / width
set rmargin at screen right / width
set tmargin at screen top / height
set bmargin at screen bottom / height
# SVG is drawn with the reader's fonts, the others with ours: plain has what those can draw.
words_of(i, format) = format eq 'svg' ? words[i] : plain[i]
label_of(i) = \
    sprintf("set label %d words_of(%d, format) at screen %g, screen %g %s noenhanced font 'sans-serif,%g' textcolor rgb '%s'", \
            i, i, text_x[i] / width, text_y[i] / height, text_ends[i] ? 'right' : 'left', text_size[i], text_color[i])
value_of(format) = format eq 'svg' ? value_label : value_plain
# Sizes are those of SVG; the other formats count points and fonts otherwise.
terminal_of(format) = \
    format eq 'png' ? sprintf("set terminal pngcairo size %d,%d font 'sans-serif,24' fontscale 0.75 pointscale 3 background rgb 'white'", width, height) : \
    format eq 'pdf' ? sprintf("set terminal pdfcairo size %g,%g font 'sans-serif,24' fontscale 0.27 linewidth 0.72 pointscale 1.08 background rgb 'white'", width / 200., height / 200.) : \
    sprintf("set terminal svg size %d,%d dynamic font 'sans-serif,24' background rgb 'white'", width, height)
