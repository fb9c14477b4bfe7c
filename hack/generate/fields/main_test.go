package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package v1

// App is what is delivered.
//
// +genclient
type App struct {
	metav1.TypeMeta ` + "`json:\",inline\"`" + `
	// parts are its parts, or | none.
	// +optional
	Parts []*Part ` + "`json:\"parts,omitempty\"`" + `
	// mode is A or B.
	Mode Mode ` + "`json:\"mode\"`" + `
	hidden string
}

// Part is one.
type Part struct {
	// sizes are by name.
	Sizes map[string]int32 ` + "`json:\"sizes\"`" + `
	// whole is what it is of.
	Whole *App ` + "`json:\"whole\"`" + `
}

// Mode is a text.
type Mode string
`

const want = `
### App

App is what is delivered.

| field | type | |
|---|---|---|
| ` + "`parts` | list of [Part](#part) | are its parts, or \\| none. |\n| `mode` | text | is A or B. |" + `

### Part

Part is one.

| field | type | |
|---|---|---|
| ` + "`sizes` | map of number | are by name. |\n| `whole` | [App](#app) | is what it is of. |" + `

`

func TestTypesBecomeTables(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "types.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(folder, "page.md")
	if err := os.WriteFile(page, []byte("# Page\n"+begin+"\nold\n"+end+"\nrest\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // written twice, it is the same
		if err := run(folder, page, []string{"App"}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if whole := "# Page\n" + begin + "\n" + want + end + "\nrest\n"; string(got) != whole {
			t.Errorf("got\n%s\nwant\n%s", got, whole)
		}
	}
	if err := run(folder, page, []string{"Lunch"}); err == nil || !strings.Contains(err.Error(), "there is no type Lunch") {
		t.Errorf("a type that there is not: %v", err)
	}
}
