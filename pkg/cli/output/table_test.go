package output

import (
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	for name, test := range map[string]struct {
		rows [][]string
		want []string
	}{
		"columns are as wide as their widest cell": {
			rows: [][]string{{"NAME", "READY", "MESSAGE"}, {"web-canary", "1/2", "waits"}, {"db", "3/3", "ok"}},
			want: []string{"NAME        READY  MESSAGE", "web-canary  1/2    waits", "db          3/3    ok"},
		},
		"no line ends in spaces":               {rows: [][]string{{"NAME", "MESSAGE"}, {"web", ""}}, want: []string{"NAME  MESSAGE", "web"}},
		"what is empty says so":                {rows: [][]string{Row("NAME", "MESSAGE"), Row("web", "")}, want: []string{"NAME  MESSAGE", "web   -"}},
		"what somebody says makes no column":   {rows: [][]string{Row("a", "b"), Row("x\ty", "z")}, want: []string{"a    b", "x y  z"}},
		"a row may have fewer cells":           {rows: [][]string{{"a", "b", "c"}, {"long name"}}, want: []string{"a  b  c", "long name"}},
		"a table of nothing is an empty line":  {want: []string{""}},
		"a character is as wide as it is seen": {rows: [][]string{{"ä", "b"}, {"cc", "d"}}, want: []string{"ä   b", "cc  d"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Table(test.rows); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNoCellOfAFilledTableIsEmpty(t *testing.T) {
	if got, want := Filled([][]string{{"NAME", "READY"}, {"web", ""}, {"", "1/1"}}), []string{"NAME  READY", "web   -", "-     1/1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestARowLeavesItsCellsAsTheyAre(t *testing.T) {
	cells := []string{"", "a\tb"}
	if got := Row(cells...); !slices.Equal(got, []string{Nothing, "a b"}) || cells[0] != "" || cells[1] != "a\tb" {
		t.Errorf("it makes %q of %q", got, cells)
	}
}
