# Heat map: a cell a variant, its numbers written in it by the texts of the script.
unset border
unset tics
unset grid
set xrange [0:1]
set yrange [0:1]
do for [i = 1:cells] {
    set object i rectangle from screen cell_left[i] / width, screen cell_bottom[i] / height \
        to screen (cell_left[i] + cell_width) / width, screen (cell_bottom[i] + cell_height) / height \
        back fillcolor rgb cell_color[i] fillstyle solid 1 border linecolor rgb 'white' linewidth 4
}
do for [format in formats] {
    eval terminal_of(format)
    do for [i = 1:texts] { eval label_of(i) }
    set output prefix.name.'.'.format
    plot -1e300
    unset output
}
