// Command fields writes the fields of API types, with what is said of them, into a page of documentation: a table for each type between two
// markers, the types that are named first, and behind each those that its fields are made of. Equal types give an equal page.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	begin = "<!-- fields: written by make generate -->"
	end   = "<!-- fields end -->"
)

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: fields FOLDER PAGE TYPE...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintf(os.Stderr, "write the fields of %s into %s: %v\n", os.Args[1], os.Args[2], err)
		os.Exit(1)
	}
}

func run(folder, page string, roots []string) error {
	types, err := read(folder)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	tables, err := types.tables(roots)
	if err != nil {
		return err
	}
	next, err := replace(text, tables)
	if err != nil {
		return err
	}
	return os.WriteFile(page, next, 0o644)
}

// replace puts tables between the markers of a page.
func replace(page []byte, tables string) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !found || !closed {
		return nil, errors.New("the page lacks the markers")
	}
	return slices.Concat(before, []byte(begin+"\n"+tables), []byte(end), after), nil
}

// structs are the types of a package that have fields, by name.
type structs map[string]described

// described is a type with what is said of it and of its fields.
type described struct {
	doc    string
	fields []field
}

type field struct{ name, kind, doc, of string }

func read(folder string) (structs, error) {
	written := func(info fs.FileInfo) bool {
		return !strings.HasSuffix(info.Name(), "_test.go") && !strings.HasPrefix(info.Name(), "zz_generated")
	}
	//lint:ignore SA1019 Build tags do not matter here.
	packages, err := parser.ParseDir(token.NewFileSet(), folder, written, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	out := structs{}
	for _, pkg := range packages {
		for _, file := range pkg.Files {
			for _, declaration := range file.Decls {
				if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.TYPE {
					out.add(general)
				}
			}
		}
	}
	return out, nil
}

func (s structs) add(declaration *ast.GenDecl) {
	for _, spec := range declaration.Specs {
		named, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if of, ok := named.Type.(*ast.StructType); ok {
			s[named.Name.Name] = described{doc: said(declaration.Doc), fields: fieldsOf(of)}
		}
	}
}

// fieldsOf are the fields of a type that are its own, by the names that they have in JSON.
func fieldsOf(of *ast.StructType) []field {
	var out []field
	for _, f := range of.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if kind, _ := kindOf(f.Type); options == "inline" {
			out = append(out, inlined[kind]...)
		}
		if name == "" || name == "-" {
			continue
		}
		kind, in := kindOf(f.Type)
		doc := said(f.Doc)
		out = append(out, field{name: name, kind: kind, of: in, doc: strings.TrimPrefix(doc, name+" ")})
	}
	return out
}

// inlined are the fields of types of others that are embedded.
var inlined = map[string][]field{"LabelSelector": {
	{name: "matchLabels", kind: "map of text", doc: "are labels that all have to be there."},
	{name: "matchExpressions", kind: "list of object", doc: "are requirements of labels, as in any label selector of Kubernetes."},
}}

// words are what types of others are called.
var words = map[string]string{
	"string": "text", "bool": "true or false", "int32": "number", "int64": "number", "float64": "number", "Time": "time", "Duration": "duration",
	"IntOrString": "number or text", "RawExtension": "object", "ObjectMeta": "ObjectMeta", "Percentage": "percentage",
}

// kindOf writes a type for people, and names the type of the package that it is made of, if it is.
func kindOf(of ast.Expr) (kind, in string) {
	switch of := of.(type) {
	case *ast.StarExpr:
		return kindOf(of.X)
	case *ast.ArrayType:
		kind, in = kindOf(of.Elt)
		return "list of " + kind, in
	case *ast.MapType:
		kind, in = kindOf(of.Value)
		return "map of " + kind, in
	case *ast.SelectorExpr:
		return word(of.Sel.Name), ""
	case *ast.Ident:
		return word(of.Name), of.Name
	}
	return "object", ""
}

func word(name string) string {
	if known := words[name]; known != "" {
		return known
	}
	return name
}

// said is a comment in one line, without what it tells generators.
func said(comment *ast.CommentGroup) string {
	if comment == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(comment.Text()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// tables writes the types that are named, and behind each those that it is made of and that have not been written yet.
func (s structs) tables(roots []string) (string, error) {
	var out strings.Builder
	done := map[string]bool{}
	var write func(name string)
	write = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		fmt.Fprintf(&out, "\n### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", name, s[name].doc)
		for _, f := range s[name].fields {
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", f.name, s.linked(f), strings.ReplaceAll(f.doc, "|", `\|`))
		}
		for _, f := range s[name].fields {
			if _, ours := s[f.of]; ours && words[f.of] == "" {
				write(f.of)
			}
		}
	}
	for _, root := range roots {
		if _, there := s[root]; !there {
			return "", fmt.Errorf("there is no type %s", root)
		}
		write(root)
	}
	out.WriteString("\n")
	return out.String(), nil
}

// linked is the type of a field, with a link to its table if it has one. Types that are texts are called so.
func (s structs) linked(f field) string {
	if words[f.of] != "" || f.of == "" {
		return f.kind
	}
	if _, ours := s[f.of]; !ours {
		return strings.Replace(f.kind, f.of, "text", 1)
	}
	return strings.Replace(f.kind, f.of, fmt.Sprintf("[%s](#%s)", f.of, strings.ToLower(f.of)), 1)
}
