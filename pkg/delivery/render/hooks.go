package render

import (
	"fmt"
	"slices"
	"strings"
)

// hookAnnotation says at which events Helm would make an object.
const hookAnnotation = "helm.sh/hook"

// withoutHooks leaves out what Helm would not make with the other objects of a release, and warns of it. Jobs and Pods that are hooks run once
// at an event, which nobody would do here. Other objects that are there from an installation on are kept as ordinary ones.
func withoutHooks(objects []parsed) (kept []parsed, warnings []string) {
	for _, p := range objects {
		events := eventsOf(p)
		switch {
		case len(events) == 0 || slices.Contains(events, "crd-install"):
			kept = append(kept, p)
		case slices.Contains(events, "test") || slices.Contains(events, "test-success"):
			warnings = append(warnings, fmt.Sprintf("%s is left out: it is a test of the chart", NameOf(p.object)))
		case runsOnce(p) || !slices.ContainsFunc(events, stays):
			warnings = append(warnings, fmt.Sprintf("%s is left out: it is a hook (%s), and those are not run; a stage SCRIPT_RUN can do what it does",
				NameOf(p.object), strings.Join(events, ", ")))
		default:
			warnings = append(warnings, fmt.Sprintf("%s is a hook (%s), and is kept as an ordinary object", NameOf(p.object), strings.Join(events, ", ")))
			kept = append(kept, p)
		}
	}
	return kept, warnings
}

func eventsOf(p parsed) []string {
	var out []string
	for _, event := range strings.Split(p.object.GetAnnotations()[hookAnnotation], ",") {
		if event = strings.ToLower(strings.TrimSpace(event)); event != "" {
			out = append(out, event)
		}
	}
	return out
}

func runsOnce(p parsed) bool {
	name := NameOf(p.object)
	return name.Kind == "Job" && name.Group == "batch" || name.Kind == "Pod" && name.Group == ""
}

// stays reports whether what is made at an event is there while the release is.
func stays(event string) bool {
	return slices.Contains([]string{"pre-install", "post-install", "pre-upgrade", "post-upgrade"}, event)
}
