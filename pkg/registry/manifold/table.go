package manifold

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	lines "github.com/manifold-dev/manifold/internal/text"
)

// column is what kubectl prints of an object in one place.
type column[T runtime.Object] struct {
	metav1.TableColumnDefinition
	cell func(object T, age string) any
}

// table converts objects of one kind, and lists of them, to rows for people. Its first column is the name.
type table[T runtime.Object] []column[T]

// wide is the priority of columns that only "-o wide" shows.
const wide = 1

// unknown stands where a cluster has not reported.
const unknown = "<unknown>"

// longestCell bounds a cell. Clusters say their versions and regions themselves.
const longestCell = 1024

// none stands where there is nothing to show.
const none = "<none>"

func newTable[T runtime.Object](columns ...column[T]) table[T] {
	name := text("Name", "Name of the object.", func(object T) string {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return unknown
		}
		return accessor.GetName()
	})
	name.Format = "name"
	return append(table[T]{name}, columns...)
}

func text[T runtime.Object](name, description string, cell func(T) string) column[T] {
	return column[T]{
		metav1.TableColumnDefinition{Name: name, Type: "string", Description: description},
		func(object T, _ string) any { return lines.Line(cell(object), longestCell) },
	}
}

func number[T runtime.Object](name, description string, cell func(T) int64) column[T] {
	return column[T]{
		metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description},
		func(object T, _ string) any { return cell(object) },
	}
}

func age[T runtime.Object]() column[T] {
	return column[T]{
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created."},
		func(_ T, age string) any { return age },
	}
}

// whenWide hides columns unless the output is wide.
func whenWide[T runtime.Object](columns ...column[T]) []column[T] {
	for i := range columns {
		columns[i].Priority = wide
	}
	return columns
}

// ConvertToTable shows an object, or every object of a list, as a row.
func (t table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if list, err := meta.ListAccessor(object); err == nil {
		result.ResourceVersion = list.GetResourceVersion()
		result.Continue = list.GetContinue()
		result.RemainingItemCount = list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		result.ResourceVersion = single.GetResourceVersion()
	}
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		for _, column := range t {
			result.ColumnDefinitions = append(result.ColumnDefinitions, column.TableColumnDefinition)
		}
	}
	var err error
	result.Rows, err = metatable.MetaToTableRow(object, t.cells)
	return result, err
}

func (t table[T]) cells(object runtime.Object, _ metav1.Object, _, age string) ([]any, error) {
	typed, ok := object.(T)
	if !ok {
		return nil, fmt.Errorf("show %T as a row: the columns are for another kind", object)
	}
	cells := make([]any, 0, len(t))
	for _, column := range t {
		cells = append(cells, column.cell(typed, age))
	}
	return cells, nil
}
