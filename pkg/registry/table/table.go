// Package table makes the rows that kubectl prints of objects.
package table

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	lines "github.com/manifold-dev/manifold/internal/text"
)

// Column is what kubectl prints of an object in one place.
type Column[T runtime.Object] struct {
	metav1.TableColumnDefinition
	cell func(object T, age string) any
}

// Table converts objects of one kind, and lists of them, to rows for people. Its first column is the name.
type Table[T runtime.Object] []Column[T]

// wide is the priority of columns that only "-o wide" shows.
const wide = 1

// Unknown stands where nobody has reported.
const Unknown = "<unknown>"

// longestCell bounds a cell. Much of what is shown is said by others, such as the versions and regions of clusters.
const longestCell = 1024

// None stands where there is nothing to show.
const None = "<none>"

// New makes a table of these columns behind the name.
func New[T runtime.Object](columns ...Column[T]) Table[T] {
	name := Text("Name", "Name of the object.", func(object T) string {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return Unknown
		}
		return accessor.GetName()
	})
	name.Format = "name"
	return append(Table[T]{name}, columns...)
}

// Text is a column of one line, in which nothing does anything to a terminal.
func Text[T runtime.Object](name, description string, cell func(T) string) Column[T] {
	return Column[T]{
		metav1.TableColumnDefinition{Name: name, Type: "string", Description: description},
		func(object T, _ string) any { return lines.Line(cell(object), longestCell) },
	}
}

// Number is a column of whole numbers.
func Number[T runtime.Object](name, description string, cell func(T) int64) Column[T] {
	return Column[T]{
		metav1.TableColumnDefinition{Name: name, Type: "integer", Description: description},
		func(object T, _ string) any { return cell(object) },
	}
}

// Age is the column of the time since an object was created.
func Age[T runtime.Object]() Column[T] {
	return Column[T]{
		metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: "Time since the object was created."},
		func(_ T, age string) any { return age },
	}
}

// WhenWide hides columns unless the output is wide.
func WhenWide[T runtime.Object](columns ...Column[T]) []Column[T] {
	for i := range columns {
		columns[i].Priority = wide
	}
	return columns
}

// ConvertToTable shows an object, or every object of a list, as a row.
func (t Table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
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

func (t Table[T]) cells(object runtime.Object, _ metav1.Object, _, age string) ([]any, error) {
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
