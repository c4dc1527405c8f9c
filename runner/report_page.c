/* What the HTML page of a report always has: its look in light, dark and print, and the script that sorts tables. */
extern const char report_style_text[], report_script_text[];

const char report_style_text[] =
    ":root{--ground:#fff;--text:#1b1b1b;--quiet:#555;--line:#d0d0d0;--stripe:#f5f6f8;--strong:#004a86}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#16181c;--text:#e6e6e6;--quiet:#a8adb5;--line:#3a3f47;"
    "--stripe:#1f2329;--strong:#8fc4f2}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:72rem;padding:1.5rem;background:var(--ground);color:var(--text);"
    "font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word}\n"
    "h1{margin:0;font-size:1.8rem}h2{margin:2.2rem 0 .6rem;font-size:1.25rem;border-bottom:1px solid var(--line)}\n"
    ".question{font-size:1.15rem}.answer{font-size:1.15rem;border-left:4px solid var(--strong);padding-left:.8rem}\n"
    ".wide{overflow-x:auto;margin:1rem 0}.wide:focus-visible{outline:2px solid var(--strong)}\n"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}\n"
    "caption{text-align:left;color:var(--quiet);padding:.2rem 0 .4rem}\n"
    "th,td{padding:.3rem .7rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}\n"
    "tbody th{font-weight:600}.number{text-align:right;white-space:nowrap}tbody tr:nth-child(even){background:var(--"
    "stripe)}\n"
    "thead button{font:inherit;font-weight:600;color:inherit;background:none;border:0;padding:0;cursor:pointer;"
    "text-align:inherit}\n"
    "th[aria-sort=ascending] button::after{content:' \\2191'}th[aria-sort=descending] button::after{content:' "
    "\\2193'}\n"
    ".note{color:var(--quiet);font-size:.9rem;margin:.3rem 0}\n"
    "figure{margin:1.5rem 0}img{display:block;width:100%;height:auto;background:#fff;border-radius:6px}\n"
    "figcaption{color:var(--quiet);font-size:.9rem;padding-top:.3rem}\n"
    "pre{overflow-x:auto;background:var(--stripe);padding:.8rem;border-radius:6px}\n"
    "@media print{:root{--ground:#fff;--text:#000;--quiet:#444;--line:#bbb;--stripe:#fff;--strong:#000}"
    "body{max-width:none;padding:0;font-size:11pt}.wide{overflow:visible}table{font-size:8.5pt}"
    "figure,tr{break-inside:avoid}h2{break-after:avoid}}\n";

/* Numbers by value wherever they stand in the cell, texts by the alphabet; what says nothing goes last. */
const char report_script_text[] =
    "for (const button of document.querySelectorAll('thead button')) button.addEventListener('click', () => {\n"
    "  const heading = button.parentElement, table = heading.closest('table'), column = heading.cellIndex;\n"
    "  const down = heading.getAttribute('aria-sort') === 'ascending', body = table.tBodies[0];\n"
    "  const value = row => row.cells[column].textContent.trim();\n"
    "  const number = text => { const m = /^[[<]?([+-]?[\\d,]*\\.?\\d+(?:e[+-]?\\d+)?)/i.exec(text);"
    " return m ? parseFloat(m[1].replace(/,/g, '')) : NaN; };\n"
    "  const rows = [...body.rows].map((row, i) => [row, value(row), number(value(row)), i]);\n"
    "  const empty = x => x[1] === '' || x[1] === 'n/a' || x[1] === '-';\n"
    "  rows.sort((a, b) => empty(a) - empty(b) || (down ? -1 : 1) * (isNaN(a[2]) || isNaN(b[2])"
    " ? a[1].localeCompare(b[1], 'en') : a[2] - b[2]) || a[3] - b[3]);\n"
    "  for (const th of heading.parentElement.cells) th.removeAttribute('aria-sort');\n"
    "  heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');\n"
    "  body.append(...rows.map(x => x[0]));\n"
    "});\n";
