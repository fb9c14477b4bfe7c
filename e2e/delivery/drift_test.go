package delivery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// standardApp has what most applications have, written as people write it: units and numbers that are stored otherwise, and fields left out that the
// server fills in.
func standardApp(drift string) string {
	return fmt.Sprintf(`
apiVersion: delivery.manifold.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  drift: %s
  targets:
  - {name: one, cluster: east}
  - {name: two, cluster: west}
  source:
    inline:
      objects:
      - {apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: blue}}
      - apiVersion: v1
        kind: Service
        metadata: {name: web}
        spec: {selector: {app: web}, ports: [{port: 53, name: tcp}, {port: 53, name: udp, protocol: UDP, targetPort: dns}]}
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, annotations: {team: us}}
        spec:
          replicas: 2
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec:
              serviceAccountName: web
              nodeSelector: {}
              containers:
              - name: web
                image: web:1
                env: [{name: A, value: "1"}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
                envFrom: [{configMapRef: {name: settings}}]
                ports: [{containerPort: 53, name: tcp}, {containerPort: 53, name: dns, protocol: UDP}]
                resources: {requests: {cpu: 0.01, memory: 0.015625Gi}, limits: {cpu: 1000m}}
                readinessProbe: {httpGet: {path: /, port: 53}}
                volumeMounts: [{name: tmp, mountPath: /tmp}, {name: tmp, mountPath: /cache, subPath: cache}]
              volumes: [{name: tmp, emptyDir: {}}]
      - apiVersion: autoscaling/v1
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 3, maxReplicas: 5, targetCPUUtilizationPercentage: 80}
      - {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 50%%, selector: {matchLabels: {app: web}}}}
      - {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}, ingress: [{ports: [{port: 53}]}]}}
      - apiVersion: networking.k8s.io/v1
        kind: Ingress
        metadata: {name: web}
        spec: {rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: tcp}}}}]}}]}
      - apiVersion: batch/v1
        kind: CronJob
        metadata: {name: clean}
        spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "clean:1"}]}}}}}
`, drift)
}

// inSync waits until the application is what was released, in all clusters.
func inSync(s *framework.Scenario) v1alpha1.Application {
	s.Helper()
	return awaitApp(s, "it is what was released", func(app v1alpha1.Application) error {
		if !meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ApplicationInSync) || app.Status.Sync != v1alpha1.Synced || len(app.Status.Drift) > 0 {
			return fmt.Errorf("%s, drift %+v, conditions %+v, targets %+v", app.Status.Sync, app.Status.Drift, app.Status.Conditions, app.Status.Targets)
		}
		return nil
	})
}

// awaitDrift waits until exactly these fields are shown, as OBJECT PATH: WANTED FOUND.
func awaitDrift(s *framework.Scenario, want ...string) v1alpha1.Application {
	s.Helper()
	return awaitApp(s, fmt.Sprintf("its drift is %q", want), func(app v1alpha1.Application) error {
		var got []string
		for _, d := range app.Status.Drift {
			got = append(got, fmt.Sprintf("%s/%s %s: %s %s", d.Kind, d.Name, d.Path, d.Wanted, d.Found))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || int(app.Status.DriftCount) != len(want) {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

const (
	colourDrift = `ConfigMap/settings /data/colour: "blue" "red"`
	imageDrift  = `Deployment/web /spec/template/spec/containers/0/image: "web:1" "web:2"`
)

func setColour(s *framework.Scenario, colour string) {
	s.Helper()
	s.Logical.Kubectl("patch", "configmap", "settings", "--type=merge", "-p", fmt.Sprintf(`{"data":{"colour":%q}}`, colour))
}

func TestDriftIsWhatSomebodyHasChangedAndNothingElse(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(standardApp("{}"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	inSync(s)
	// What others add, and what an autoscaler does, is no drift; what somebody changes is, and alone.
	s.Logical.Kubectl("annotate", "deployment", "web", "note=mine")
	s.Logical.Kubectl("scale", "deployment", "web", "--replicas=3") // which the autoscaler would do, and does not take back
	began := time.Now()
	setColour(s, "red")
	app := awaitDrift(s, colourDrift)
	t.Logf("shown after %s", time.Since(began).Round(time.Millisecond))
	// It is in the logical cluster alone: clusters hold what was released, and go on as they were.
	for _, target := range app.Status.Targets {
		if target.Sync != v1alpha1.Synced || target.Message != "" {
			t.Errorf("target %s tells %+v", target.Name, target)
		}
	}
	if condition := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ApplicationInSync); app.Status.Sync != v1alpha1.OutOfSync || condition == nil ||
		condition.Message != `ConfigMap/settings: /data/colour is to be "blue", and "red" was found in the logical cluster alone` {
		t.Errorf("the application is %s, and its condition %+v", app.Status.Sync, condition)
	}
	if got := app.Status.Drift[0].Clusters; len(got) > 0 {
		t.Errorf("clusters are %s", got)
	}
	for _, cluster := range []string{"east", "west"} {
		if got := s.Side(cluster).Kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.colour}"); got != "blue" {
			t.Errorf("cluster %s has %q", cluster, got)
		}
	}
	expect.Says(t, s.Logical.CLI("app", "get", "web"), "ConfigMap/settings", "/data/colour", `"blue"`, `"red"`, "OutOfSync", "logical cluster alone")
	setColour(s, "blue")
	inSync(s)

	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:2")
	awaitDrift(s, imageDrift)
	s.Logical.Kubectl("delete", "configmap", "settings")
	app = awaitDrift(s, "ConfigMap/settings :  ", imageDrift)
	// What is gone above goes from the clusters.
	for _, target := range app.Status.Targets {
		if target.Sync != v1alpha1.OutOfSync || !strings.Contains(target.Message, "ConfigMap/settings is not there any more") {
			t.Errorf("target %s tells %+v", target.Name, target)
		}
	}
	if got := strings.Join(app.Status.Drift[0].Clusters, " "); got != "east west" {
		t.Errorf("it is gone from clusters %s", got)
	}
	s.Logical.Apply(standardApp("{heal: true}"))
	inSync(s)
	s.Logical.Kubectl("get", "configmap", "settings")
	if got := s.Logical.Kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image} {.metadata.annotations.note}"); got != "3 web:1 mine" {
		t.Errorf("put back is %q, want the image alone", got)
	}
	s.Logical.Poll("an event tells of it", func() error {
		if told := s.Logical.Kubectl("get", "events", "--field-selector=reason=Healed", "-o", "jsonpath={.items[*].message}"); !strings.Contains(told, "Deployment/web: /spec/template/spec/containers/0/image") {
			return fmt.Errorf("told is %q", told)
		}
		return nil
	})
}

func TestFieldsThatAreIgnoredAreNeitherShownNorPutBack(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	s.Logical.Apply(standardApp(`{heal: true, ignore: [{kind: ConfigMap, jsonPointers: [/data/colour]}, {kind: Deployment, jsonPointers: [/metadata/annotations/team]}]}`))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	inSync(s)
	setColour(s, "red")
	s.Logical.Kubectl("annotate", "--overwrite", "deployment", "web", "team=them")
	s.Logical.Kubectl("set", "image", "deployment/web", "web=web:2")
	s.Logical.Poll("the image is put back, and the annotation stays", func() error {
		if got := s.Logical.Kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.metadata.annotations.team}"); got != "web:1 them" {
			return fmt.Errorf("there is %q", got)
		}
		return nil
	})
	inSync(s)
	if got := s.Logical.Kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.colour}"); got != "red" {
		t.Errorf("the colour is %q, want the one that is ignored", got)
	}
}

// A webhook that changes what is applied would change it again: that is no drift, and what somebody changes of it is.
func TestWhatAWebhookChangesIsNoDrift(t *testing.T) {
	framework.Long(t)
	s := suite.Scenario(t)
	registerWebhook(s, "MutatingWebhookConfiguration", "", "configmaps", replacing(`"colour":"blue"`, "/data/colour", "navy"))
	s.Logical.Poll("the webhook is asked", func() error {
		got := s.Logical.KubectlInput(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"},"data":{"colour":"blue"}}`, "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.data.colour}")
		if got != "navy" {
			return fmt.Errorf("the colour is %q", got)
		}
		return nil
	})
	s.Logical.Apply(inlineApp("blue", "  targets: [{name: one, cluster: east}]"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	inSync(s)
	setColour(s, "red")
	awaitDrift(s, `ConfigMap/settings /data/colour: "navy" "red"`)
}

func TestAClusterThatHaltsIsShownAsUnknownSoon(t *testing.T) {
	framework.Long(t)
	s := suite.Fragile(t)
	s.Logical.Apply(standardApp("{}"))
	awaitPhase(s, "web-v1", v1alpha1.ReleaseSucceeded)
	inSync(s)
	west := s.Environment.Clusters["west"]
	t.Cleanup(func() { _ = west.ResumeAll() })
	began := time.Now()
	if err := west.PauseAll(); err != nil {
		t.Fatal(err)
	}
	app := awaitApp(s, "target two is unknown", func(app v1alpha1.Application) error {
		if target := app.Status.Targets[1]; target.Sync != v1alpha1.SyncUnknown || target.Health != v1alpha1.HealthUnknown {
			return fmt.Errorf("it is %+v", target)
		}
		return nil
	})
	t.Logf("shown after %s", time.Since(began).Round(time.Millisecond))
	if one := app.Status.Targets[0]; one.Sync != v1alpha1.Synced || one.Health != v1alpha1.Healthy {
		t.Errorf("target one is %+v", one)
	}
	s.Logical.Kubectl("delete", "service", "web") // which reaches clusters
	awaitApp(s, "drift is shown of the cluster that answers alone", func(app v1alpha1.Application) error {
		if one, two := app.Status.Targets[0], app.Status.Targets[1]; one.Sync != v1alpha1.OutOfSync || two.Sync != v1alpha1.SyncUnknown {
			return fmt.Errorf("they are %+v and %+v", one, two)
		}
		return nil
	})
	began = time.Now()
	s.Logical.Apply(strings.Replace(standardApp("{}"), "image: web:1", "image: web:2", 1))
	awaitRelease(s, "web-v2", "shows the cluster that does not answer as that", func(release v1alpha1.Release) bool {
		return slices.ContainsFunc(release.Status.Stages, func(stage v1alpha1.StageStatus) bool {
			return slices.ContainsFunc(stage.Targets, func(target v1alpha1.StageTargetStatus) bool {
				return target.Cluster == "west" && strings.Contains(target.Message, "does not answer")
			})
		})
	})
	t.Logf("shown by the release after %s", time.Since(began).Round(time.Millisecond))
	expect.AwaitRuns(s, "web", map[string]string{"east": "3 of web:2"}) // as its autoscaler wants
	if err := west.ResumeAll(); err != nil {
		t.Fatal(err)
	}
	patient := *s
	patient.Logical = s.Logical.Within(2 * time.Minute)
	awaitPhase(&patient, "web-v2", v1alpha1.ReleaseSucceeded)
	awaitApp(&patient, "all is well again", func(app v1alpha1.Application) error {
		if app.Status.Sync != v1alpha1.Synced || app.Status.Health != v1alpha1.Healthy || len(app.Status.Drift) > 0 {
			return fmt.Errorf("%+v, drift %+v", app.Status.Targets, app.Status.Drift)
		}
		return nil
	})
}
