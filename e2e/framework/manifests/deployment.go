package manifests

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Deployment is the manifest of a Deployment whose pods ask for next to nothing, so that tests do not fill the clusters.
func Deployment(name string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  labels:
    app: %[1]s
spec:
  replicas: %[2]d
  selector:
    matchLabels:
      app: %[1]s
  template:
    metadata:
      labels:
        app: %[1]s
    spec:
      containers:
      - name: web
        image: web:1
        ports:
        - containerPort: 8080
        resources:
          requests:
            cpu: 10m
            memory: 16Mi
`, name, replicas)
}

// Edited returns the manifest of a Deployment after a change.
func Edited(manifest string, change func(*appsv1.Deployment)) string {
	d := &appsv1.Deployment{}
	if err := yaml.UnmarshalStrict([]byte(manifest), d); err != nil {
		panic(err) // The manifest is the test's own.
	}
	change(d)
	data, err := yaml.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Pinned adds the user's pin to the manifest of a Deployment.
func Pinned(manifest, clusters string) string {
	return Edited(manifest, func(d *appsv1.Deployment) {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[v1alpha1.AnnotationClusters] = clusters
	})
}
