package metrics

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

func TestTable(t *testing.T) {
	usage := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	window := metav1.Duration{Duration: 15 * time.Second}
	pod := v1beta1.PodMetrics{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1"}, Window: window,
		Containers: []v1beta1.ContainerMetrics{{Name: "web", Usage: usage("100m", "10Mi")}, {Name: "proxy", Usage: usage("20m", "6Mi")}},
	}
	node := v1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Window: window, Usage: usage("2", "1Gi")}
	for name, test := range map[string]struct {
		object  runtime.Object
		options metav1.TableOptions
		want    string
	}{
		"a pod is the sum of its containers":     {object: &pod, want: "[Name cpu memory Window] [web-1 120m 16Mi 15s]"},
		"pods are a row each":                    {object: &v1beta1.PodMetricsList{Items: []v1beta1.PodMetrics{pod, pod}}, want: "[Name cpu memory Window] [web-1 120m 16Mi 15s] [web-1 120m 16Mi 15s]"},
		"a node":                                 {object: &node, want: "[Name cpu memory Window] [east 2 1Gi 15s]"},
		"nodes":                                  {object: &v1beta1.NodeMetricsList{Items: []v1beta1.NodeMetrics{node}}, want: "[Name cpu memory Window] [east 2 1Gi 15s]"},
		"headers are left out if nobody asks":    {object: &node, options: metav1.TableOptions{NoHeaders: true}, want: "[] [east 2 1Gi 15s]"},
		"an empty list has a table without rows": {object: &v1beta1.PodMetricsList{}, want: "[Name Window]"},
	} {
		t.Run(name, func(t *testing.T) {
			table, err := toTable(test.object, &test.options)
			if err != nil {
				t.Fatal(err)
			}
			headers := []string{}
			for _, column := range table.ColumnDefinitions {
				headers = append(headers, column.Name)
			}
			got := fmt.Sprint(headers)
			for _, row := range table.Rows {
				got += fmt.Sprint(" ", row.Cells)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
