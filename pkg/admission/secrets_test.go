package admission

import (
	"context"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	delivery "github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// mayRead is an authorizer that lets somebody, or a group, get one Secret of namespace shop, and notes which ones are asked about.
type mayRead struct {
	asked
	who, secret string
	about       *[]string
}

func (m mayRead) Authorize(_ context.Context, of authorizer.Attributes) (authorizer.Decision, string, error) {
	if of.GetVerb() != "get" || of.GetResource() != "secrets" || of.GetAPIGroup() != "" || of.GetSubresource() != "" || of.GetNamespace() != "shop" || !of.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, "this is about something else", nil
	}
	*m.about = append(*m.about, of.GetName())
	if of.GetName() == m.secret && (of.GetUser().GetName() == m.who || slices.Contains(of.GetUser().GetGroups(), m.who)) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "RBAC: nothing gives it", nil
}

// Whoever may write Applications and read no Secrets has none sent anywhere: not by a field that names one, not by another address for one that is named, and not by
// what is only tried. Alice may get Secret "login", and Mallory none.
func TestAnApplicationNamesSecretsThatItsWriterMayRead(t *testing.T) {
	app := func(spec string) *delivery.Application {
		out := &delivery.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		if err := yaml.UnmarshalStrict([]byte(spec), &out.Spec); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const (
		here, evil = "https://git.example/shop.git", "https://evil.example/shop.git"
		open       = "source: {git: {url: '" + here + "'}}"
		git        = "source: {git: {url: '" + here + "', secretRef: {name: login}}}"
		pushes     = "source: {git: {url: '" + here + "', webhook: {secretRef: {name: login}}}}"
		provider   = "source: {git: {url: '" + here + "', pipecd: {analysisProviders: {prom: 'https://prom.example'}, analysisSecrets: {prom: login}}}}"
		notices    = "notifications: [{name: ops, secretRef: {name: login}}]"
		queries    = "pipeline: {stages: [{name: ANALYSIS, with: {metrics: [{provider: 'https://prom.example', query: up, secretRef: {name: login}}]}}]}"
		requests   = "pipeline: {stages: [{name: ANALYSIS, with: {https: [{url: 'https://web.example', secretRef: {name: login}}]}}]}"

		at    = "spec.source.git.secretRef.name"
		right = `: you need the right to "get" secrets "login" in namespace "shop": RBAC: nothing gives it`
	)
	with := func(spec string, replace ...string) string { return strings.NewReplacer(replace...).Replace(spec) }
	for name, test := range map[string]struct {
		who      string
		groups   []string
		old, now string
		dryRun   bool
		status   bool
		refused  string
		// asked are the Secrets that the right is asked for, in order.
		asked []string
	}{
		"who may get a Secret names it for git":        {who: "alice", now: git, asked: []string{"login"}},
		"who may not does not":                         {who: "mallory", now: git, refused: at + right},
		"nor another one beside it":                    {who: "alice", now: git + "\n" + with(notices, "login", "crown"), refused: `spec.notifications[0].secretRef.name: you need the right to "get" secrets "crown"`},
		"nor for pushes":                               {who: "mallory", now: pushes, refused: "spec.source.git.webhook.secretRef.name" + right},
		"nor for a provider of files":                  {who: "mallory", now: provider, refused: "spec.source.git.pipecd.analysisSecrets[prom]" + right},
		"nor for notices":                              {who: "mallory", now: notices, refused: "spec.notifications[0].secretRef.name" + right},
		"nor for queries":                              {who: "mallory", now: queries, refused: "spec.pipeline.stages[0].with.metrics[0].secretRef.name" + right},
		"nor for requests":                             {who: "mallory", now: requests, refused: "spec.pipeline.stages[0].with.https[0].secretRef.name" + right},
		"nor later":                                    {who: "mallory", old: open, now: git, refused: at + right},
		"nor in place of another":                      {who: "mallory", old: with(git, "login", "other"), now: git, refused: at + right},
		"nor does a dry run show that it would do":     {who: "mallory", now: git, dryRun: true, refused: at + right},
		"nor that of a change":                         {who: "mallory", old: git, now: with(git, here, evil), dryRun: true, refused: at + right},
		"nor has it sent to another repository":        {who: "mallory", old: git, now: with(git, here, evil), refused: at + right},
		"nor to another folder of the server":          {who: "mallory", old: git, now: with(git, "shop.git", "crown.git"), refused: at + right},
		"nor to another provider":                      {who: "mallory", old: queries, now: with(queries, "prom.example", "evil.example"), refused: "metrics[0].secretRef.name" + right},
		"nor to another server by a provider's name":   {who: "mallory", old: provider, now: with(provider, "prom.example", "evil.example"), refused: "analysisSecrets[prom]" + right},
		"nor to another server with requests":          {who: "mallory", old: requests, now: with(requests, "web.example", "evil.example"), refused: "https[0].secretRef.name" + right},
		"nor behind the same address":                  {who: "mallory", old: requests, now: with(requests, "secretRef", "headers: [{key: Host, value: evil.example}], secretRef"), refused: "https[0].secretRef.name" + right},
		"nor with another method":                      {who: "mallory", old: requests, now: with(requests, "secretRef", "method: DELETE, secretRef"), refused: "https[0].secretRef.name" + right},
		"nor by one more stage":                        {who: "mallory", old: queries, now: with(queries, "[{provider", "[{provider: 'https://evil.example', query: up, secretRef: {name: login}}, {provider"), refused: "metrics[0].secretRef.name" + right},
		"nor signed with":                              {who: "mallory", old: with(notices, "secretRef", "type: Slack, secretRef"), now: notices, refused: "notifications[0].secretRef.name" + right},
		"nor taken from a plugin":                      {who: "mallory", old: with(queries, "ANALYSIS,", "ANALYSIS, plugin: own,"), now: queries, refused: "metrics[0].secretRef.name" + right},
		"nor for something else than it is for":        {who: "mallory", old: git, now: git + "\n" + notices, refused: "notifications[0].secretRef.name" + right},
		"who may get it has it sent elsewhere":         {who: "alice", old: git, now: with(git, here, evil), asked: []string{"login"}},
		"a ServiceAccount may":                         {who: "system:serviceaccount:flux:applier", groups: []string{"alice"}, now: git, asked: []string{"login"}},
		"and may not":                                  {who: "system:serviceaccount:flux:applier", groups: []string{"system:serviceaccounts"}, now: git, refused: at + right},
		"who acts as somebody has the rights of that":  {who: "mallory", groups: []string{"system:authenticated"}, old: open, now: git, refused: at + right},
		"the right is asked for once for each Secret":  {who: "alice", now: git + "\n" + notices + "\n" + queries, asked: []string{"login"}},
		"who leaves it as it is needs no right":        {who: "mallory", old: git, now: with(git, "url", "path: web, interval: 1h, url") + "\nsuspend: true\nprune: true"},
		"nor who names nothing else in another place":  {who: "mallory", old: queries, now: with(queries, "[{name: A", "[{name: WAIT, with: {duration: 1m}}, {name: A")},
		"nor who asks something else of it":            {who: "mallory", old: queries, now: with(queries, "query: up", "query: down")},
		"nor who is notified of less":                  {who: "mallory", old: notices, now: with(notices, "secretRef", "events: [ReleaseFailed], secretRef")},
		"nor who takes it away":                        {who: "mallory", old: git, now: open},
		"nor who names none":                           {who: "mallory", now: open},
		"nor who names what a plugin alone reads":      {who: "mallory", now: with(queries, "ANALYSIS,", "ANALYSIS, plugin: own,")},
		"a Secret without a name is for validation":    {who: "mallory", now: with(git, "login", "''")},
		"a status is no spec":                          {who: "mallory", old: open, now: git, status: true},
		"what is not read as options is nothing to us": {who: "mallory", now: "pipeline: {stages: [{name: ANALYSIS, with: [a]}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			operation, old, subresource := admission.Create, runtime.Object(nil), ""
			if test.old != "" {
				operation, old = admission.Update, app(test.old)
			}
			if test.status {
				subresource = "status"
			}
			plugin := &readers{Handler: admission.NewHandler(admission.Create, admission.Update)}
			if err := plugin.ValidateInitialization(); err == nil {
				t.Error("it does without an authorizer")
			}
			var about []string
			plugin.SetAuthorizer(mayRead{who: "alice", secret: "login", about: &about})
			err := plugin.Validate(t.Context(), admission.NewAttributesRecord(app(test.now), old, delivery.SchemeGroupVersion.WithKind("Application"), "shop", "web",
				delivery.SchemeGroupVersion.WithResource("applications"), subresource, operation, nil, test.dryRun, &user.DefaultInfo{Name: test.who, Groups: test.groups}), nil)
			switch {
			case test.refused == "" && (err != nil || !slices.Equal(about, test.asked)):
				t.Errorf("answer %v, and the right to %q is asked for, want %q", err, about, test.asked)
			case test.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("answer %v, want %q", err, test.refused)
			}
		})
	}
}

func TestOtherKindsNameNoSecretsForTheServer(t *testing.T) {
	plugin := &readers{Handler: admission.NewHandler(admission.Create, admission.Update), authorizer: mayRead{about: &[]string{}}}
	if err := plugin.Validate(t.Context(), admission.NewAttributesRecord(&delivery.Release{}, nil, delivery.SchemeGroupVersion.WithKind("Release"), "shop", "web-x2f",
		delivery.SchemeGroupVersion.WithResource("releases"), "", admission.Create, nil, false, &user.DefaultInfo{Name: "mallory"}), nil); err != nil {
		t.Error(err)
	}
}
