package validation

import "testing"

func TestValidateTargets(t *testing.T) {
	checkSpecs(t, specs{
		"weights of all make 100":              {spec: "targets: [{name: a, cluster: a, weight: 30}, {name: b, cluster: b, weight: 70}]"},
		"some weights leave something":         {spec: "targets: [{name: a, cluster: a, weight: 30}, {name: b, cluster: b}]"},
		"an empty selector selects all":        {spec: "targets: [{name: a, clusterSelector: {}}]"},
		"a folder above the application's":     {spec: "{source: {git: {url: https://git.example/a, path: web/prd}}, targets: [{name: a, cluster: a, path: ../overlays/a}]}"},
		"a strategic merge patch of an object": {spec: "targets: [{name: a, cluster: a, patches: [{patch: '{kind: Deployment, metadata: {name: web}}'}]}]"},
		"a JSON patch with its target": {
			spec: "targets: [{name: a, cluster: a, patches: [{target: {kind: Deployment}, patch: '[{op: remove, path: /spec/replicas}]'}]}]",
		},

		"names that cannot be, twice": {
			spec: "targets: [{name: A, cluster: a}, {name: b, cluster: b}, {name: b, cluster: c}, {name: '', cluster: d}]",
			want: []string{`spec.targets[0].name: Invalid value: "A"`, `spec.targets[2].name: Duplicate value: "b"`, "spec.targets[3].name: Required value"},
		},
		"a place that is missing": {
			spec: "targets: [{name: a}]", want: []string{"spec.targets[0]: Required value: exactly one of cluster, clusterSelector must be set"},
		},
		"two places": {
			spec: "targets: [{name: a, cluster: a, clusterSelector: {}}]", want: []string{"spec.targets[0].clusterSelector: Forbidden: may not be combined with cluster"},
		},
		"a cluster that two have":       {spec: "targets: [{name: a, cluster: east}, {name: b, cluster: east}]", want: []string{`spec.targets[1].cluster: Duplicate value: "east"`}},
		"a cluster that cannot exist":   {spec: "targets: [{name: a, cluster: East}]", want: []string{`spec.targets[0].cluster: Invalid value: "East"`}},
		"a selector that cannot select": {spec: "targets: [{name: a, clusterSelector: {matchLabels: {a b: c}}}]", want: []string{"spec.targets[0].clusterSelector.matchLabels: Invalid value"}},
		"a folder outside of the repository": {
			spec: "{source: {git: {url: https://git.example/a, path: web}}, targets: [{name: a, cluster: a, path: ../../b}]}",
			want: []string{`spec.targets[0].path: Invalid value: "../../b": must not leave the repository`},
		},
		"a folder of what has none": {
			spec: "{source: {selector: {matchLabels: {a: b}}}, targets: [{name: a, cluster: a, path: b}]}", want: []string{"spec.targets[0].path: Forbidden"},
		},
		"weights that do not add up": {
			spec: "targets: [{name: a, cluster: a, weight: 30}, {name: b, cluster: b, weight: 60}]",
			want: []string{"spec.targets: Invalid value: 90: weights must add up to 100"},
		},
		"weights that leave nothing": {
			spec: "targets: [{name: a, cluster: a, weight: 100}, {name: b, cluster: b}]", want: []string{"spec.targets: Invalid value: 100: weights must leave"},
		},
		"weights that are no parts": {
			spec: "targets: [{name: a, cluster: a, weight: 101}, {name: b, cluster: b, weight: -1}]",
			want: []string{"spec.targets[0].weight: Invalid value: 101", "spec.targets[1].weight: Invalid value: -1"},
		},
		"patches that change nothing, or nobody knows what": {
			spec: `
targets:
- name: a
  cluster: a
  patches:
  - {patch: ""}
  - {patch: just words}
  - {patch: "{spec: {replicas: 1}}"}
  - {patch: "[{op: remove, path: /a}]"}
  - {target: {kind: A}, patch: "[{op: delete, path: a}]"}
  - {target: {name: "(", labelSelector: "a=,="}, patch: "{spec: {}}"}
  - {patch: "{a: {"}
`,
			want: []string{
				"spec.targets[0].patches[0].patch: Required value", `spec.targets[0].patches[1].patch: Invalid value: "just words"`,
				"spec.targets[0].patches[2].patch: Invalid value", "spec.targets[0].patches[3].target: Required value",
				`spec.targets[0].patches[4].patch[0].op: Unsupported value: "delete"`, `spec.targets[0].patches[4].patch[0].path: Invalid value: "a"`,
				`spec.targets[0].patches[5].target.labelSelector: Invalid value: "a=,="`, `spec.targets[0].patches[5].target.name: Invalid value: "("`,
				"spec.targets[0].patches[6].patch: Invalid value",
			},
		},
	})
}
