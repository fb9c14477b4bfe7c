package output

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
)

// Nothing stands in a cell of a table of which there is nothing to say.
const Nothing = "-"

// Row returns cells as they stand in a table: none is empty, and none begins another column.
func Row(cells ...string) []string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		out[i] = cmp.Or(strings.ReplaceAll(cell, "\t", " "), Nothing)
	}
	return out
}

// Filled lays rows out in columns, as lines, where no cell is empty.
func Filled(rows [][]string) []string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = Row(row...)
	}
	return Table(out)
}

// Table lays rows of cells out in columns, as lines.
func Table(rows [][]string) []string {
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	_ = tab.Flush() // into memory
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}
