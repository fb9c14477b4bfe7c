package grants

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	manifoldv1alpha1 "github.com/manifold-dev/manifold/apis/manifold/v1alpha1"
)

// Levels of the Pod Security Standards. Privileged stands for no bound at all.
const (
	Privileged = "privileged"
	Baseline   = manifoldv1alpha1.PodSecurityBaseline
	Restricted = manifoldv1alpha1.PodSecurityRestricted
)

// levelKey is the annotation of the policy about pods, and of its binding, with the level that it keeps them to.
const levelKey = "manifold.dev/pod-security"

// PodSecurityName names what bounds the pods that Manifold makes. It is apart from what joining applies whole, so that joining again keeps it.
func PodSecurityName(logical types.UID) string { return Name(logical) + "-pod-security" }

// ParsePodSecurity reads the value of --pod-security, "" for what was before.
func ParsePodSecurity(value string) (string, error) {
	if value != "" && !slices.Contains([]string{Privileged, Baseline, Restricted}, value) {
		return "", fmt.Errorf("--pod-security must be %q, %q or %q, not %q", Privileged, Baseline, Restricted, value)
	}
	return value, nil
}

// PodSecurityIn returns the level that a policy or its binding with these labels and annotations is for, "" if joining has not made it.
func PodSecurityIn(labels, annotations map[string]string) string {
	if level := annotations[levelKey]; Made(labels) && bounds(level) {
		return level
	}
	return ""
}

func bounds(level string) bool { return level == Baseline || level == Restricted }

// podRule is one of a level's, and what whoever breaks it is told that Manifold may not create pods with.
type podRule struct{ expression, with string }

// baselineRules are those of the Pod Security Standards, level Baseline, and restrictedRules what level Restricted asks for beside. They are about
// any system: what Restricted leaves to pods for Windows, it asks of all.
var (
	baselineRules = []podRule{
		{`!(has(variables.spec.hostNetwork) && variables.spec.hostNetwork) && !(has(variables.spec.hostPID) && variables.spec.hostPID) &&
!(has(variables.spec.hostIPC) && variables.spec.hostIPC)`, "namespaces of the node"},
		{`variables.volumes.all(v, !has(v.hostPath))`, "hostPath volumes"},
		{`variables.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))`, "ports of the node"},
		{`variables.contexts.all(s, !has(s.privileged) || !s.privileged)`, "privileged containers"},
		{`variables.contexts.all(s, !has(s.capabilities) || !has(s.capabilities.add) || s.capabilities.add.all(a, a in ` + listOf([]string{
			"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
		}) + `))`, "capabilities that the level does not allow"},
		{`variables.contexts.all(s, !has(s.procMount) || s.procMount in ["", "Default"])`, "a procMount other than Default"},
		{`variables.allContexts.all(s, !has(s.seccompProfile) || s.seccompProfile.type != "Unconfined")`, "seccomp profile Unconfined"},
		{`variables.allContexts.all(s, !has(s.appArmorProfile) || s.appArmorProfile.type != "Unconfined") &&
variables.annotations.all(k, !k.startsWith("container.apparmor.security.beta.kubernetes.io/") ||
variables.annotations[k] in ["", "runtime/default"] || variables.annotations[k].startsWith("localhost/"))`, "AppArmor profile Unconfined"},
		{`variables.allContexts.all(s, !has(s.seLinuxOptions) ||
(!has(s.seLinuxOptions.type) || s.seLinuxOptions.type in ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"]) &&
(!has(s.seLinuxOptions.user) || s.seLinuxOptions.user == "") && (!has(s.seLinuxOptions.role) || s.seLinuxOptions.role == ""))`, "SELinux options that the level does not allow"},
		{`!has(variables.podContext.sysctls) || variables.podContext.sysctls.all(s, s.name in ` + listOf([]string{
			"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
			"net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
			"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
		}) + `)`, "sysctls that the level does not allow"},
		{`variables.allContexts.all(s, !has(s.windowsOptions) || !has(s.windowsOptions.hostProcess) || !s.windowsOptions.hostProcess)`, "host processes"},
	}
	restrictedRules = []podRule{
		{`variables.volumes.all(v, has(v.configMap) || has(v.csi) || has(v.downwardAPI) || has(v.emptyDir) || has(v.ephemeral) ||
has(v.persistentVolumeClaim) || has(v.projected) || has(v.secret))`, "volumes of types that the level does not allow"},
		{`variables.containers.all(c, has(c.securityContext) && has(c.securityContext.allowPrivilegeEscalation) && !c.securityContext.allowPrivilegeEscalation)`,
			"containers without allowPrivilegeEscalation: false"},
		{`variables.containers.all(c, has(c.securityContext) && has(c.securityContext.runAsNonRoot) ? c.securityContext.runAsNonRoot :
has(variables.podContext.runAsNonRoot) && variables.podContext.runAsNonRoot)`, "containers without runAsNonRoot: true"},
		{`variables.allContexts.all(s, !has(s.runAsUser) || s.runAsUser != 0)`, "runAsUser 0"},
		{`variables.containers.all(c, has(c.securityContext) && has(c.securityContext.seccompProfile) ?
c.securityContext.seccompProfile.type in ["RuntimeDefault", "Localhost"] :
has(variables.podContext.seccompProfile) && variables.podContext.seccompProfile.type in ["RuntimeDefault", "Localhost"])`,
			"containers without a seccomp profile"},
		{`variables.containers.all(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.drop) &&
"ALL" in c.securityContext.capabilities.drop &&
(!has(c.securityContext.capabilities.add) || c.securityContext.capabilities.add.all(a, a == "NET_BIND_SERVICE")))`,
			"containers that do not drop ALL capabilities, or add others than NET_BIND_SERVICE"},
	}
)

// podVariables are what the rules are about.
var podVariables = []admissionregistrationv1.Variable{
	{Name: "isPod", Expression: `request.resource.resource == "pods"`},
	{Name: "spec", Expression: `variables.isPod ? object.spec : object.spec.template.spec`},
	{Name: "annotations", Expression: `variables.isPod ? (has(object.metadata.annotations) ? object.metadata.annotations : {}) :
has(object.spec.template.metadata) && has(object.spec.template.metadata.annotations) ? object.spec.template.metadata.annotations : {}`},
	{Name: "isAsBefore", Expression: `// What runs already is not asked again: it may be about to end, or to be let go of.
request.operation == "UPDATE" && (variables.isPod ? object.spec == oldObject.spec : object.spec.template == oldObject.spec.template)`},
	{Name: "containers", Expression: `(has(variables.spec.containers) ? variables.spec.containers : []) +
(has(variables.spec.initContainers) ? variables.spec.initContainers : []) +
(has(variables.spec.ephemeralContainers) ? variables.spec.ephemeralContainers : [])`},
	{Name: "volumes", Expression: `has(variables.spec.volumes) ? variables.spec.volumes : []`},
	{Name: "podContext", Expression: `has(variables.spec.securityContext) ? variables.spec.securityContext : {}`},
	{Name: "contexts", Expression: `variables.containers.filter(c, has(c.securityContext)).map(c, c.securityContext)`},
	{Name: "allContexts", Expression: `variables.contexts + [variables.podContext]`},
}

// podFence keeps the pods that the syncer makes, by itself or by workloads, to a level of the Pod Security Standards, in whatever namespace: it may
// make namespaces, and what Pod Security keeps their pods to is said by their labels.
func podFence(logical types.UID, level string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	rules := baselineRules
	if level == Restricted {
		rules = slices.Concat(baselineRules, restrictedRules)
	}
	writes := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: PodSecurityName(logical), Labels: Labels(), Annotations: map[string]string{levelKey: level}},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: ptr.To(admissionregistrationv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: append(rulesForWorkloads(writes...), ruleFor([]string{""}, []string{"pods/ephemeralcontainers"}, writes...)),
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{isTheSyncer(logical)},
			Variables:       podVariables,
		},
	}
	for _, rule := range rules {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionregistrationv1.Validation{
			Expression:        "variables.isAsBefore || " + grouped(rule.expression),
			MessageExpression: fmt.Sprintf("\"Manifold may not create pods with %s here: the cluster joined with --pod-security=%s\"", rule.with, level),
			Reason:            ptr.To(metav1.StatusReasonForbidden),
		})
	}
	return policy
}

func grouped(expression string) string {
	if strings.Contains(expression, "\n") {
		return "(\n" + expression + ")"
	}
	return "(" + expression + ")"
}

// ForPodSecurity returns what bounds pods.
func ForPodSecurity(logical types.UID, level string) ([]Piece, error) {
	return assemble(podSecurity(logical, level)...)
}

func podSecurity(logical types.UID, level string) []row {
	binding := fenceBinding(PodSecurityName(logical))
	binding.Annotations = map[string]string{levelKey: level}
	return []row{
		policy(podFence(logical, level), "What pods Manifold may make, by --pod-security."),
		policyBinding(binding, "Puts that in force."),
	}
}
