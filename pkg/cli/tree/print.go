package tree

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/manifold-dev/manifold/pkg/cli/output"
)

// print writes the tree as json, as yaml, or as a text for people that fits into some columns.
func (n *Node) print(out io.Writer, format output.Format, width int) error {
	return format.Print(out, n, func(out io.Writer) error { return n.text(out, width) })
}

// row is one object in a text.
type row struct {
	// guide are the branches before the object, rest those before the further lines of it.
	guide, rest string
	node        *Node
}

// text writes one row for each object. What is wrong stands below the object, as wide as the screen.
func (n *Node) text(out io.Writer, width int) error {
	rows := n.rows(nil, "", "")
	cells := [][]string{{"OBJECT", "CLUSTERS", "READY"}}
	for _, r := range rows {
		cells = append(cells, []string{r.guide + r.node.title(), strings.Join(r.node.Clusters, ","), r.node.ready()})
	}
	widths := columns(cells)
	start := 0
	for _, w := range widths {
		start += w + gap
	}
	var text strings.Builder
	for i, c := range cells {
		status, rest := "STATUS", ""
		if i > 0 {
			status, rest = rows[i-1].node.status(), rows[i-1].rest
		}
		var line strings.Builder
		for j, cell := range c {
			pad(&line, cell, widths[j]+gap)
		}
		for j, part := range wrap(status, width-start) {
			if j > 0 {
				line.Reset()
				pad(&line, rest, start)
			}
			text.WriteString(strings.TrimRight(line.String()+part, " ") + "\n")
		}
		if i == 0 {
			continue
		}
		for _, problem := range rows[i-1].node.Problems {
			for j, part := range wrap(problem, width-utf8.RuneCountInString(rest)-len("! ")) {
				mark := "! "
				if j > 0 {
					mark = "  "
				}
				text.WriteString(rest + mark + part + "\n")
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// gap is what stands between columns.
const gap = 2

// widestCell bounds what a long name does to all other rows.
const widestCell = 56

func columns(cells [][]string) []int {
	out := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			out[i] = max(out[i], min(utf8.RuneCountInString(cell), widestCell))
		}
	}
	return out
}

func pad(out *strings.Builder, cell string, width int) {
	out.WriteString(cell)
	out.WriteString(strings.Repeat(" ", max(width-utf8.RuneCountInString(cell), 1)))
}

// rows are the object and all below it. guide is what stands before it and rest what stands before all below it.
func (n *Node) rows(into []row, guide, rest string) []row {
	trunk := rest
	if len(n.Children) > 0 {
		trunk += "│ "
	} else {
		trunk += "  "
	}
	into = append(into, row{guide: guide, rest: trunk, node: n})
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			into = child.rows(into, rest+"└─ ", rest+"   ")
		} else {
			into = child.rows(into, rest+"├─ ", rest+"│  ")
		}
	}
	return into
}

// relationWords are the relations that a kind alone does not tell.
var relationWords = map[Relation]string{
	RunsIn: "in ", OwnedBy: "belongs to ", NeededBy: "needed by ", LeadsTo: "leads to ", Concerns: "concerns ",
}

func (n *Node) title() string {
	name := n.Name
	if n.Namespace != "" {
		name = n.Namespace + "/" + name
	}
	switch {
	case n.Count > 0:
		return fmt.Sprintf("%s%d %ss", relationWords[n.Relation], n.Count, n.Kind)
	case n.Relation == RunsIn:
		return "in " + name
	default:
		return relationWords[n.Relation] + n.Kind + " " + name
	}
}

func (n *Node) ready() string {
	if n.Ready == nil {
		return ""
	}
	return fmt.Sprintf("%d/%d", n.Ready.Ready, n.Ready.Of)
}

// status is what the row says: a mark on what somebody should look at.
func (n *Node) status() string {
	if !n.bad() {
		return n.Status
	}
	return "! " + cmp.Or(n.Status, strings.ToLower(string(n.Health)))
}

// wrap breaks a text between words so that lines have no more than width characters, unless a word has.
func wrap(text string, width int) []string {
	width = max(width, 24)
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
