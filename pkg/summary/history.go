package summary

import "k8s.io/apimachinery/pkg/util/validation"

// RevisionName returns the name of the ControllerRevision of the logical cluster that keeps the template with that hash for a StatefulSet
// or a DaemonSet.
func RevisionName(owner, templateHash string) string {
	if room := validation.DNS1123SubdomainMaxLength - len("-") - len(templateHash); room > 0 && len(owner) > room {
		owner = owner[:room]
	}
	return owner + "-" + templateHash
}
