package words

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// amount writes an amount for people: "1.5" cores, "3.9Gi" of memory. Amounts are cut, not rounded, to two figures behind the
// point, so that a text changes only when the amount changes noticeably.
func amount(name corev1.ResourceName, value int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return hundredths(value / 10)
	case inBytes(name):
		return bytes(value)
	default:
		return strconv.FormatInt(value, 10)
	}
}

// inBytes reports whether a resource is counted in bytes, quotas of storage among them.
func inBytes(name corev1.ResourceName) bool {
	const quota = string(corev1.ResourceRequestsStorage)
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage || string(name) == quota ||
		strings.HasSuffix(string(name), "/"+quota) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// exactAmount writes an amount without cutting anything, for where two amounts that differ would read the same.
func exactAmount(name corev1.ResourceName, value int64) string {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	}
	return strconv.FormatInt(value, 10)
}

func bytes(value int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
	unit, size := 0, int64(1)
	for unit < len(units)-1 && value/size >= 1024 {
		unit, size = unit+1, size*1024
	}
	return hundredths(int64(float64(value)/float64(size)*100)) + units[unit]
}

// hundredths writes 150 as "1.5".
func hundredths(value int64) string {
	return strconv.FormatFloat(float64(value)/100, 'f', -1, 64)
}

// Quantity writes an amount as a quantity, so that adding it is enough: the figures in reasons are cut.
func Quantity(name corev1.ResourceName, value int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case inBytes(name):
		return resource.NewQuantity(value, resource.BinarySI).String()
	}
	return resource.NewQuantity(value, resource.DecimalSI).String()
}
