package grouptest

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/cli-runtime/pkg/printers"
)

var update = flag.Bool("update", false, "rewrite what the tables in testdata print")

// divider stands between the objects and what is printed of them.
const divider = "\n====\n"

// CheckTables compares what kubectl prints with files that have a list of objects above a line of equal signs, and below it what is printed
// of them, narrow and wide.
func (a API) CheckTables(t *testing.T, files map[string]rest.TableConvertor) {
	for file, columns := range files {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			manifest, want, _ := strings.Cut(string(content), divider)
			list, _, err := serializer.NewCodecFactory(a.Scheme(t)).UniversalDeserializer().Decode([]byte(manifest), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			withNamespace := strings.Contains(manifest, "metadata: {namespace:")
			got := print(t, columns, list, printers.PrintOptions{WithNamespace: withNamespace}) + "\n" +
				print(t, columns, list, printers.PrintOptions{WithNamespace: withNamespace, Wide: true})
			if *update {
				if err := os.WriteFile(file, []byte(manifest+divider+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s\nif it is right, run the test with -update", got, want)
			}
		})
	}
}

func print(t *testing.T, columns rest.TableConvertor, object runtime.Object, options printers.PrintOptions) string {
	t.Helper()
	table, err := columns.ConvertToTable(t.Context(), object, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printers.NewTablePrinter(options).PrintObj(table, &out); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}
