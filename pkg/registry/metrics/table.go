package metrics

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// row is what a table shows of an object.
type row struct {
	name   string
	usage  corev1.ResourceList
	window metav1.Duration
	object runtime.Object
}

// toTable shows metrics with the columns of metrics-server: the name, every resource, and the window that was measured.
func toTable(object, options runtime.Object) (*metav1.Table, error) {
	rows, err := rowsOf(object)
	if err != nil {
		return nil, err
	}
	used := map[corev1.ResourceName]bool{}
	for _, r := range rows {
		for name := range r.usage {
			used[name] = true
		}
	}
	resources := slices.Sorted(maps.Keys(used))
	table := &metav1.Table{}
	if opts, ok := options.(*metav1.TableOptions); !ok || !opts.NoHeaders {
		table.ColumnDefinitions = columns(resources)
	}
	for _, r := range rows {
		cells := []any{r.name}
		for _, name := range resources {
			quantity := r.usage[name]
			cells = append(cells, quantity.String())
		}
		cells = append(cells, r.window.Duration.String())
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: r.object}})
	}
	return table, nil
}

func columns(resources []corev1.ResourceName) []metav1.TableColumnDefinition {
	all := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the resource"}}
	for _, name := range resources {
		all = append(all, metav1.TableColumnDefinition{Name: string(name), Type: "string", Format: "quantity"})
	}
	return append(all, metav1.TableColumnDefinition{Name: "Window", Type: "string", Format: "duration"})
}

func rowsOf(object runtime.Object) ([]row, error) {
	var rows []row
	switch o := object.(type) {
	case *v1beta1.NodeMetrics:
		rows = append(rows, nodeRow(o))
	case *v1beta1.NodeMetricsList:
		for i := range o.Items {
			rows = append(rows, nodeRow(&o.Items[i]))
		}
	case *v1beta1.PodMetrics:
		rows = append(rows, podRow(o))
	case *v1beta1.PodMetricsList:
		for i := range o.Items {
			rows = append(rows, podRow(&o.Items[i]))
		}
	default:
		return nil, fmt.Errorf("show %T as a table: it holds no metrics", object)
	}
	return rows, nil
}

func nodeRow(m *v1beta1.NodeMetrics) row {
	return row{name: m.Name, usage: m.Usage, window: m.Window, object: m}
}

func podRow(m *v1beta1.PodMetrics) row {
	total := corev1.ResourceList{}
	for _, container := range m.Containers {
		addUsage(total, container.Usage)
	}
	return row{name: m.Name, usage: total, window: m.Window, object: m}
}
