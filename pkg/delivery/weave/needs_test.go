package weave

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// said are needs as lines.
func said(needs []Need) (out []string) {
	for _, n := range needs {
		line := fmt.Sprintf("%s: %s %s in %s", n.Path, n.Verb, n.Resource, n.Namespace)
		if n.Name != "" {
			line += "/" + n.Name
		}
		out = append(out, line)
	}
	return out
}

func TestNobodyGainsARightByAPipeline(t *testing.T) {
	const (
		helm   = "appRef: {apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, name: web}"
		first  = "spec.environments[0].targets[0].namespace: "
		pull   = "promotion: {strategy: {pull-request: {type: gitea, url: 'https://a.b/c', baseBranch: main, secretRef: {name: token}}}}"
		direct = "promotion: {strategy: {direct: {serviceAccountName: promoter}}}"
		keyed  = "promotion: {strategy: {notification: {}, secretRef: {name: key}}}"
	)
	in := func(targets string) string { return "environments: [{name: dev, targets: [" + targets + "]}]" }
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"who shows a Deployment may list them": {
			after: of(app + ", " + dev), want: []string{first + "list deployments.apps in web"},
		},
		"who shows a HelmRelease may list both": {
			after: of(helm + ", " + dev), want: []string{first + "list deployments.apps in web", first + "list helmreleases.helm.toolkit.fluxcd.io in web"},
		},
		"who shows what has a label may list all that can have it": {
			after: older(dev), want: []string{
				first + "list helmreleases.helm.toolkit.fluxcd.io in web", first + "list kustomizations.kustomize.toolkit.fluxcd.io in web", first + "list deployments.apps in web",
				first + "list statefulsets.apps in web", first + "list daemonsets.apps in web", first + "list cronjobs.batch in web", first + "list applications.delivery.manifold.dev in web",
			},
		},
		"also of a namespace of Kubernetes' own": {
			after: of(app + ", " + in("{namespace: kube-system}")), want: []string{first + "list deployments.apps in kube-system"},
		},
		"the namespace of a cluster's reference gives none": {
			after: of(app + ", " + in("{namespace: web, clusterRef: {kind: GitopsCluster, name: dev, namespace: mine}}")), want: []string{first + "list deployments.apps in web"},
		},
		"each namespace once": {
			after: of(app + ", environments: [{name: dev, targets: [{namespace: a}, {namespace: a, clusterRef: {kind: Cluster, name: dev}}]}, {name: prod, targets: [{namespace: b}]}]"),
			want:  []string{first + "list deployments.apps in a", "spec.environments[1].targets[0].namespace: list deployments.apps in b"},
		},
		"who changes nothing of the targets needs nothing": {
			before: of(app + ", " + dev), after: of(app + ", " + dev + ", promotion: {strategy: {notification: {}}}"),
		},
		"who takes a target away needs nothing": {
			before: of(app + ", " + in("{namespace: a}, {namespace: b}")), after: of(app + ", " + in("{namespace: b}")),
		},
		"who renames an environment needs nothing": {
			before: of(app + ", " + in("{namespace: a}")), after: of(app + ", environments: [{name: test, targets: [{namespace: a}]}]"),
		},
		"who adds a target may list what is in it": {
			before: of(app + ", " + in("{namespace: a}")), after: of(app + ", " + in("{namespace: a}, {namespace: b}")),
			want: []string{"spec.environments[0].targets[1].namespace: list deployments.apps in b"},
		},
		"who shows another cluster may list what is in the namespace": {
			before: of(app + ", " + in("{namespace: a}")), after: of(app + ", " + in("{namespace: a, clusterRef: {kind: Cluster, name: prod}}")),
			want: []string{first + "list deployments.apps in a"},
		},
		"who names another app may list what is in the targets": {
			before: of(app + ", " + dev), after: of(strings.Replace(app, "name: web", "name: secret", 1) + ", " + dev), want: []string{first + "list deployments.apps in web"},
		},
		"who names another kind may list it": {
			before: of(app + ", " + dev), after: of(helm + ", " + dev),
			want: []string{first + "list deployments.apps in web", first + "list helmreleases.helm.toolkit.fluxcd.io in web"},
		},
		"who has a credential used may read it": {
			before: of(app + ", " + dev), after: of(app + ", " + dev + ", " + pull), want: []string{"spec.promotion.strategy.pull-request.secretRef.name: get secrets in ops/token"},
		},
		"who turns it on another repository may": {
			before: of(app + ", " + dev + ", " + pull), after: of(app + ", " + dev + ", " + strings.Replace(pull, "a.b", "evil.example.com", 1)),
			want: []string{"spec.promotion.strategy.pull-request.secretRef.name: get secrets in ops/token"},
		},
		"who has somebody act may be him": {
			after: of(app + ", " + dev + ", " + direct), want: []string{first + "list deployments.apps in web", "spec.promotion.strategy.direct.serviceAccountName: impersonate serviceaccounts in ops/promoter"},
		},
		"who turns him on another app may be him": {
			before: of(app + ", " + dev + ", " + direct), after: of(app + ", environments: [{name: dev, targets: [{namespace: web}]}, {name: prod, targets: [{namespace: web}]}], " + direct),
			want: []string{"spec.promotion.strategy.direct.serviceAccountName: impersonate serviceaccounts in ops/promoter"},
		},
		"who takes him away need not": {
			before: of(app + ", " + dev + ", " + direct), after: of(app + ", " + dev),
		},
		"of an environment alone": {
			before: of(app + ", " + dev), after: of(app + ", environments: [{name: dev, targets: [{namespace: web}], " + direct + "}]"),
			want: []string{"spec.environments[0].promotion.strategy.direct.serviceAccountName: impersonate serviceaccounts in ops/promoter"},
		},
		"who says what calls are signed with may read it": {
			before: of(app + ", " + dev), after: of(app + ", " + dev + ", " + keyed), want: []string{"spec.promotion.strategy.secretRef.name: get secrets in ops/key"},
		},
		"who leaves that as it is need not": {
			before: of(app + ", " + dev + ", " + keyed), after: of(app + ", " + dev + ", " + strings.Replace(keyed, "{strategy", "{manual: true, strategy", 1)),
		},
		"a key is no leave to use the same Secret elsewhere": {
			before: of(app + ", " + dev + ", promotion: {strategy: {notification: {}, secretRef: {name: token}}}"), after: of(app + ", " + dev + ", " + pull),
			want: []string{"spec.promotion.strategy.pull-request.secretRef.name: get secrets in ops/token"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before *Pipeline
			if test.before != "" {
				before = read(t, test.before)
			}
			after := read(t, test.after)
			if errs := Validate(after); len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := said(Needs(before, after)); !slices.Equal(got, test.want) {
				t.Errorf("needs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestTargetsThatAreNotThereAreTold(t *testing.T) {
	exists := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	targets := func(text string) string { return of(app + ", environments: [{name: dev, targets: [" + text + "]}]") }
	for name, test := range map[string]struct{ before, after, want string }{
		"what is there is not told": {after: targets("{namespace: web}, {namespace: web, clusterRef: {kind: Cluster, name: dev}}")},
		"W15 a cluster that is not": {
			after: targets("{namespace: web, clusterRef: {kind: GitopsCluster, name: prod}}"),
			want:  `spec.environments[0].targets[0].clusterRef.name: no cluster has joined as "prod", so the target shows nothing until one does`,
		},
		"W15 a namespace that is not": {
			after: targets("{namespace: web}, {namespace: shop}"), want: `spec.environments[0].targets[1].namespace: there is no namespace "shop", so the target shows nothing until there is`,
		},
		"a namespace that may be in the cluster alone": {
			after: targets("{namespace: shop, clusterRef: {kind: Cluster, name: dev}}"),
			want:  `spec.environments[0].targets[0].namespace: the logical cluster has no namespace "shop", so of the target only what others run in cluster "dev" is shown, if its admin allows it`,
		},
		"what was told before is not told again": {before: targets("{namespace: shop}"), after: targets("{namespace: shop}, {namespace: web}")},
		"many are counted": {
			after: targets("{namespace: a}, {namespace: b}, {namespace: c}, {namespace: d}, {namespace: e}, {namespace: f}, {namespace: g}"), want: "and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before *Pipeline
			if test.before != "" {
				before = read(t, test.before)
			}
			got := strings.Join(Missing(before, read(t, test.after), exists("dev"), exists("web")), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || strings.Count(got, "\n") > mostMissing {
				t.Errorf("told %q, want %q", got, test.want)
			}
		})
	}
}
