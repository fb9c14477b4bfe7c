// Package query expands the queries of metrics, which name what differs between variants.
package query

import (
	"errors"
	"fmt"
	"strings"
	"text/template/parse"
)

// Arguments are what the query of a metric may name.
type Arguments struct {
	// Application is {{ .App.Name }}, Environment its label env, {{ .App.Env }}, and Namespace {{ .K8s.Namespace }}.
	Application, Environment, Namespace string
	// Variant is {{ .Variant.Name }}: primary, canary or baseline.
	Variant string
	// Custom are those of the metric for the variant, as in {{ .VariantCustomArgs.job }} or {{ index .VariantCustomArgs "job" }}.
	Custom map[string]string
}

// mostQuery bounds a query, in bytes, also with its arguments in it.
const mostQuery = 16 << 10

// Expand returns a query with its arguments in it. It is a template of Go of which values alone are left: nothing of it can be repeated,
// called or run, since it is expanded where everybody's queries are.
func Expand(query string, arguments Arguments) (string, error) {
	return expand(query, arguments.value)
}

// Check says why a query cannot be expanded, whatever its own arguments are.
func Check(query string) error {
	_, err := expand(query, func(path []string) (string, error) {
		if len(path) == 2 && path[0] == customArguments {
			return "", nil
		}
		return Arguments{}.value(path)
	})
	return err
}

const customArguments = "VariantCustomArgs"

// value returns the argument at a path.
func (a Arguments) value(path []string) (string, error) {
	known := map[string]string{
		"App.Name": a.Application, "App.Env": a.Environment, "K8s.Namespace": a.Namespace, "Variant.Name": a.Variant,
	}
	name := strings.Join(path, ".")
	value, ok := known[name]
	if !ok && len(path) == 2 && path[0] == customArguments {
		if value, ok = a.Custom[path[1]]; !ok {
			return "", fmt.Errorf("%s has no argument %q for variant %q", customArguments, path[1], a.Variant)
		}
	}
	if !ok {
		return "", fmt.Errorf("there is no .%s: want .Variant.Name, .%s.KEY, .App.Name, .App.Env or .K8s.Namespace", name, customArguments)
	}
	return value, nil
}

func expand(query string, value func(path []string) (string, error)) (string, error) {
	if len(query) > mostQuery {
		return "", fmt.Errorf("it has more than %d bytes", mostQuery)
	}
	trees, err := parse.Parse("query", query, "", "", map[string]any{"index": true})
	if err != nil {
		return "", err
	}
	if len(trees) > 1 || trees["query"] == nil {
		return "", errors.New("it must not define templates")
	}
	var out strings.Builder
	for _, node := range trees["query"].Root.Nodes {
		text, err := expandNode(node, value)
		if err != nil {
			return "", err
		}
		if out.WriteString(text); out.Len() > mostQuery {
			return "", fmt.Errorf("with its arguments it has more than %d bytes", mostQuery)
		}
	}
	return out.String(), nil
}

func expandNode(node parse.Node, value func(path []string) (string, error)) (string, error) {
	switch node := node.(type) {
	case *parse.TextNode:
		return string(node.Text), nil
	case *parse.ActionNode:
		if path := pathOf(node.Pipe); path != nil {
			return value(path)
		}
	}
	return "", fmt.Errorf("%s may not be used: want only values, such as {{ .Variant.Name }}", node)
}

// pathOf returns the path of the value that {{ .a.b }} or {{ index .a "b" }} stands for, nil if it is something else.
func pathOf(pipe *parse.PipeNode) []string {
	if len(pipe.Decl) != 0 || len(pipe.Cmds) != 1 {
		return nil
	}
	args := pipe.Cmds[0].Args
	switch len(args) {
	case 1:
		if field, ok := args[0].(*parse.FieldNode); ok {
			return field.Ident
		}
	case 3:
		function, called := args[0].(*parse.IdentifierNode)
		field, of := args[1].(*parse.FieldNode)
		key, text := args[2].(*parse.StringNode)
		if called && function.Ident == "index" && of && text {
			return append(append([]string(nil), field.Ident...), key.Text)
		}
	}
	return nil
}
