package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAdmitted(t *testing.T) {
	const manifest = `{kind: Deployment, apiVersion: apps/v1, metadata: {labels: {a: b}}, spec: {replicas: 1, template: {spec: {
		containers: [{name: web, image: "web:1", args: [a, b], securityContext: {privileged: true}}]}}}}`
	for name, test := range map[string]struct {
		manifest, admitted, present string
		want                        []string
	}{
		"as it is written": {admitted: manifest},
		"what is no template is others' to set": {admitted: `{kind: Deployment, apiVersion: apps/v1, metadata: {labels: {a: c}}, spec: {replicas: 3, template: {spec: {
			containers: [{name: web, image: "web:1", args: [a, b], securityContext: {privileged: true}}]}}}}`},
		"another image": {admitted: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {
			containers: [{name: web, image: "safe:1", args: [a, b], securityContext: {privileged: true}}]}}}}`,
			want: []string{"/spec/template/spec/containers/0/image"}},
		"a field taken away": {admitted: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {containers: [{name: web, image: "web:1", args: [a, b]}]}}}}`,
			want: []string{"/spec/template/spec/containers/0/securityContext"}},
		"a shorter list": {admitted: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {
			containers: [{name: web, image: "web:1", args: [a], securityContext: {privileged: true}}]}}}}`,
			want: []string{"/spec/template/spec/containers/0/args"}},
		"something added": {admitted: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {nodeSelector: {safe: "true"},
			containers: [{name: guard, image: guard}, {name: web, image: "web:1", args: [a, b], securityContext: {privileged: true, runAsNonRoot: true}}]}}}}`,
			want: []string{"/spec/template/spec/containers/0", "/spec/template/spec/containers/1/securityContext/runAsNonRoot", "/spec/template/spec/nodeSelector"}},
		"what somebody has added before is theirs": {
			admitted: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {nodeSelector: {mine: "true"}, priorityClassName: high,
				containers: [{name: web, image: "web:1", args: [a, b], securityContext: {privileged: true}}]}}}}`,
			present: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {nodeSelector: {mine: "true"}, containers: [{name: web, image: "web:0"}]}}}}`,
			want:    []string{"/spec/template/spec/priorityClassName"}},
		"the image of a job that is made by time": {
			manifest: `{kind: CronJob, apiVersion: batch/v1, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, image: "web:1"}]}}}}}}`,
			admitted: `{kind: CronJob, apiVersion: batch/v1, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: web, image: "safe:1"}]}}}}}}`,
			want:     []string{"/spec/jobTemplate/spec/template/spec/containers/0/image"}},
		"a pod, which the server completes": {
			manifest: `{kind: Pod, apiVersion: v1, spec: {containers: [{name: web, image: "web:1"}]}}`,
			admitted: `{kind: Pod, apiVersion: v1, spec: {serviceAccountName: default, containers: [{name: web, image: "safe:1", volumeMounts: [{name: token}]}]}}`,
			want:     []string{"/spec/containers/0/image"}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.manifest == "" {
				test.manifest = manifest
			}
			var present *unstructured.Unstructured
			if test.present != "" {
				present = read(t, test.present)
			}
			var got []string
			for _, d := range Admitted(read(t, test.manifest), read(t, test.admitted), present) {
				got = append(got, d.Path)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
