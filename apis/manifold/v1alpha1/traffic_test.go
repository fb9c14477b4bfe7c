package v1alpha1

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestTheTrafficOfAServiceIsItsOwnWordThenThatOfItsNamespace(t *testing.T) {
	on := func(value string) map[string]string { return map[string]string{AnnotationTraffic: value} }
	for name, test := range map[string]struct {
		service, namespace map[string]string
		want               Traffic
	}{
		"nobody says anything":                 {want: TrafficPreferLocal},
		"the namespace says it":                {namespace: on("Global"), want: TrafficGlobal},
		"the Service wins":                     {service: on("Local"), namespace: on("Global"), want: TrafficLocal},
		"what means nothing counts as none":    {service: on("global"), namespace: on("Local"), want: TrafficLocal},
		"blank is none":                        {service: on(""), want: TrafficPreferLocal},
		"the default may be said as any other": {service: on("PreferLocal"), namespace: on("Global"), want: TrafficPreferLocal},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TrafficOf(test.service, test.namespace); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

func TestTrafficThatMeansNothingIsRefusedByPath(t *testing.T) {
	path := field.NewPath("metadata", "annotations").Key(AnnotationTraffic)
	for _, known := range Traffics() {
		if errs := ValidateTraffic(string(known), path); len(errs) > 0 {
			t.Errorf("%s is refused: %v", known, errs)
		}
	}
	for _, value := range []string{"", "local", "Global ", "Everywhere"} {
		errs := ValidateTraffic(value, path)
		if len(errs) != 1 || errs[0].Field != "metadata.annotations[manifold.dev/traffic]" {
			t.Errorf("%q: %v", value, errs)
		}
	}
}
