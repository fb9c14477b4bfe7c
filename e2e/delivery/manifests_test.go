package delivery

import (
	"fmt"
	"strings"
)

// webApp is an Application called web that has these objects. Spec is the rest of its spec.
func webApp(spec string, objects ...string) string {
	out := "apiVersion: delivery.manifold.dev/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n" + indented(spec, "  ", "  ") +
		"  source:\n    inline:\n      objects:\n"
	for _, object := range objects {
		out += indented(object, "      - ", "        ")
	}
	return out
}

// webDeployment is a Deployment called web. More is what its pods have besides their container.
func webDeployment(image string, replicas int, more ...string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: %q, resources: {requests: {cpu: 10m, memory: 16Mi}}}]
%s`, replicas, image, indented(strings.Join(more, "\n"), "      ", "      "))
}

// webService leads to the pods of web.
const webService = `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}`

// indented is a text whose first line begins with one thing, and the others with another one. Lines without anything are left out.
func indented(text, first, others string) string {
	var out strings.Builder
	begins := first
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		out.WriteString(begins + line + "\n")
		begins = others
	}
	return out.String()
}
