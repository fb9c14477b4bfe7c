package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// node is a node of a file, with its place among all of them and the way to it.
type node struct {
	*yaml.Node
	index  int
	parent *node
	// key is what a mapping calls it.
	key      string
	isKey    bool
	children []*node
}

// document is one of the documents of a file.
type document struct {
	file string
	root *node
}

const (
	// mostParsed bounds a file that is parsed, mostBytes all of them, in bytes.
	mostParsed = 1 << 20
	mostBytes  = 8 << 20
	// mostWeight bounds what could make nodes in all files that are parsed. Two bytes may be one, which takes two hundred.
	mostWeight = 400_000
)

// budget is what may still be parsed.
type budget struct{ bytes, weight int }

// parse returns the documents of a file, unless it exceeds a bound, which is an ErrContent.
func (b *budget) parse(name string, content []byte) ([]document, error) {
	b.bytes -= len(content)
	for _, makes := range []string{"\n", "\r", ",", ":", "[", "{", "- ", "? "} {
		b.weight -= bytes.Count(content, []byte(makes))
	}
	switch {
	case len(content) > mostParsed:
		return nil, fmt.Errorf("%w: %s: it has %d bytes, and %d are allowed for a manifest", ErrContent, at(name, 1), len(content), mostParsed)
	case b.bytes < 0 || b.weight < 0:
		return nil, fmt.Errorf("%w: %s: too many manifests may have to be changed, and would have to be parsed; name the folder that is meant as the path", ErrContent, at(name, 1))
	}
	return parse(name, content)
}

// parse returns the documents of a file.
func parse(name string, content []byte) ([]document, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var out []document
	next := 0
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, document{file: name, root: number(&root, nil, &next)})
	}
}

// number wraps a node and all below it, in the order of the file.
func number(of *yaml.Node, parent *node, next *int) *node {
	out := &node{Node: of, index: *next, parent: parent}
	*next++
	for i, child := range of.Content {
		below := number(child, out, next)
		if of.Kind == yaml.MappingNode {
			if i%2 == 0 {
				below.isKey = true
			} else {
				below.key = of.Content[i-1].Value
			}
		}
		out.children = append(out.children, below)
	}
	return out
}

// all visits a node and all below it, in the order of the file.
func (n *node) all(visit func(*node) error) error {
	if err := visit(n); err != nil {
		return err
	}
	for _, child := range n.children {
		if err := child.all(visit); err != nil {
			return err
		}
	}
	return nil
}

// top is what a document holds; nil of one that is empty.
func (d document) top() *node {
	if len(d.root.children) == 0 {
		return nil
	}
	return d.root.children[0]
}

// field returns what lies at a path of mappings; nil if there is nothing.
func (n *node) field(keys ...string) *node {
	for _, key := range keys {
		if n == nil || n.Kind != yaml.MappingNode {
			return nil
		}
		var value *node
		for i := 1; i < len(n.children); i += 2 {
			if n.children[i].key == key {
				value = n.children[i]
			}
		}
		n = value
	}
	return n
}

// items are the elements of a sequence.
func (n *node) items() []*node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.children
}

// text is the value of a scalar at a path; empty if there is none.
func (n *node) text(keys ...string) string {
	value := n.field(keys...)
	if value == nil || value.Kind != yaml.ScalarNode {
		return ""
	}
	return value.Value
}

// scalar reports whether there is a node that is a value.
func (n *node) scalar() bool { return n != nil && n.Kind == yaml.ScalarNode }
