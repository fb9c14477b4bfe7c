package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// namedCode matches `Type.Method`, `package.Name` and `package.Type.Method`.
var namedCode = regexp.MustCompile("`([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*){1,2})(?:\\(\\))?`")

// TestTheCodeThatTheDocsNameExists notices that a function, a type or a method is called otherwise than in the pages that tell about the code.
func TestTheCodeThatTheDocsNameExists(t *testing.T) {
	there := declared{packages: map[string]bool{}, types: map[string]bool{}, names: map[string]bool{}}
	walk(t, func(file string) error {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, filepath.Join(root, "generated")) {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err == nil {
			there.add(parsed)
		}
		return err
	})
	for page, name := range namedInDocs(t, namedCode) {
		if aboutCode(page) && !there.has(name) {
			t.Errorf("%s names %s, which there is not", page, name)
		}
	}
}

func TestNamesOfCodeAreFound(t *testing.T) {
	const text = `package shop
type Cart struct { Items, sum int; Wheels }
type Payer interface { Pay() error }
func (c *Cart) Add() {}
type list[T any] []T
func (l list[T]) len() int { return 0 }
func New() *Cart { return nil }
var Closed = true
`
	parsed, err := parser.ParseFile(token.NewFileSet(), "shop.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	there := declared{packages: map[string]bool{}, types: map[string]bool{}, names: map[string]bool{}}
	there.add(parsed)
	for name, want := range map[string]bool{
		"Cart.Add": true, "shop.Cart.Add": true, "shop.New": true, "shop.Closed": true, "Cart.sum": true, "Cart.Wheels": true, "Payer.Pay": true, "list.len": true,
		"Cart.Remove": false, "shop.Cart.Remove": false, "shop.Add": false, "Basket.Add": false, "shop.Basket": false, "list.cap": false,
		"spec.replicas": true, "shop.items": true, "list.go": true, "list.k8s.io": true, // of objects of the API, a file and a host
	} {
		if got := there.has(name); got != want {
			t.Errorf("%s is there: %t, want %t", name, got, want)
		}
	}
}

// aboutCode reports whether a page tells about the code.
func aboutCode(page string) bool {
	return page == "internals.md" || strings.HasPrefix(page, "designs/")
}

// declared is what the files of the module declare: names with their package in front, and members of types with the type or both.
type declared struct{ packages, types, names map[string]bool }

// has reports whether there is what a name says. Names of files, of fields of the API and of hosts are not about code: there, a package is followed by
// what others may use.
func (d declared) has(name string) bool {
	first, rest, _ := strings.Cut(name, ".")
	private := d.types[first] && !strings.Contains(rest, ".") && rest != "go"
	aboutCode := private || exported(first) || d.packages[first] && exported(rest)
	return d.names[name] || !aboutCode
}

func exported(name string) bool {
	begin, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(begin)
}

func (d declared) add(file *ast.File) {
	of := file.Name.Name
	d.packages[of] = true
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				d.names[of+"."+decl.Name.Name] = true
			} else {
				d.member(of, receiver(decl.Recv.List[0].Type), decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				d.addSpec(of, spec)
			}
		}
	}
}

func (d declared) addSpec(of string, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			d.names[of+"."+name.Name] = true
		}
	case *ast.TypeSpec:
		d.types[spec.Name.Name], d.names[of+"."+spec.Name.Name] = true, true
		var fields *ast.FieldList
		switch is := spec.Type.(type) {
		case *ast.StructType:
			fields = is.Fields
		case *ast.InterfaceType:
			fields = is.Methods
		default:
			return
		}
		for _, field := range fields.List {
			if len(field.Names) == 0 {
				d.member(of, spec.Name.Name, receiver(field.Type))
			}
			for _, name := range field.Names {
				d.member(of, spec.Name.Name, name.Name)
			}
		}
	}
}

func (d declared) member(of, typ, name string) {
	d.names[typ+"."+name], d.names[of+"."+typ+"."+name] = true, true
}

// receiver is the name of the type that a method or an embedded field is of.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.Ident:
		return of.Name
	}
	return ""
}
