package delivery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/e2e/framework"
	"github.com/manifold-dev/manifold/e2e/framework/expect"
)

// somebody is a user who has a role in the scenario's namespace.
type somebody struct {
	s     *framework.Scenario
	flags []string
}

func given(s *framework.Scenario, user, clusterRole, probe string, groups ...string) somebody {
	s.Helper()
	s.Logical.Kubectl("create", "rolebinding", user, "--clusterrole="+clusterRole, "--user="+user)
	flags := []string{"--as=" + user}
	for _, group := range groups {
		flags = append(flags, "--as-group="+group)
	}
	who := somebody{s, flags}
	s.Logical.Poll(user+" has the role", func() error {
		return framework.Failure(who.may(probe))
	})
	return who
}

func (w somebody) try(args ...string) framework.Result {
	return w.s.Logical.Try(append(args, w.flags...)...)
}

// may asks about a right, such as "create releases/approve". What kubectl takes behind a slash is the name of an object.
func (w somebody) may(what string) framework.Result {
	verb, resource, _ := strings.Cut(what, " ")
	resource, subresource, _ := strings.Cut(resource, "/")
	return w.try("auth", "can-i", verb, resource, "--subresource="+subresource)
}

// ask posts to a subresource of the release.
func (w somebody) ask(what, kind, fields string) framework.Result {
	body := fmt.Sprintf(`{"apiVersion":"delivery.manifold.dev/v1alpha1","kind":%q%s}`, kind, fields)
	path := "/apis/delivery.manifold.dev/v1alpha1/namespaces/" + w.s.Namespace + "/releases/web-x2f/" + what
	return w.s.Logical.TryInput(body, append([]string{"create", "--raw", path, "-f", "-"}, w.flags...)...)
}

func (w somebody) approves() framework.Result {
	return w.ask("approve", "ReleaseApproval", `,"comment":"fine"`)
}

// waits brings the release to where it waits for approval, as what goes through its stages does.
func waits(s *framework.Scenario) {
	s.Helper()
	status := `{"status":{"phase":"Running","plan":{"strategy":"Pipeline","targets":[{"name":"hoge"}],"rollback":{"when":"Any"},"progressDeadlineSeconds":600,
"stages":[{"id":"agree","name":"WAIT_APPROVAL","with":{"approvers":["group:sre","alice"]}},{"id":"go","name":"K8S_SYNC"}]},
"stages":[{"id":"agree","name":"WAIT_APPROVAL","phase":"Running","attempt":1},{"id":"go","name":"K8S_SYNC","phase":"NotStarted"}]}}`
	s.Logical.Kubectl("patch", "release", "web-x2f", "--subresource=status", "--type=merge", "-p", status)
}

func requests(s *framework.Scenario) []v1alpha1.ReleaseRequest {
	s.Helper()
	var got v1alpha1.Release
	if err := json.Unmarshal([]byte(s.Logical.Kubectl("get", "release", "web-x2f", "-o", "json")), &got); err != nil {
		s.Fatal(err)
	}
	return got.Status.Requests
}

func TestRolesOfDelivery(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(release)
	waits(s)
	for name, test := range map[string]struct {
		who  somebody
		want map[string]string
	}{
		"viewers look": {given(s, "vera", "view", "get releases"), map[string]string{
			"list applications": "yes", "get applicationrevisions": "yes", "watch releases": "yes", "create applications": "no", "create releases": "no",
			"create releases/approve": "no", "create releases/cancel": "no",
		}},
		"editors release, and do not approve": {given(s, "ed", "edit", "create releases"), map[string]string{
			"create applications": "yes", "delete releases": "yes", "create releases/cancel": "yes", "create releases/skip": "yes", "create releases/retry": "yes",
			"create releases/rollback": "yes", "create releases/approve": "no", "update releases/status": "no", "update applications/status": "no",
			"create applicationrevisions": "no", "delete applicationrevisions": "no",
		}},
		"admins approve": {given(s, "ada", "admin", "create releases/approve"), map[string]string{
			"create applications": "yes", "update releases/status": "no",
		}},
		"who may only approve does that": {given(s, "amy", "manifold-delivery-approve", "create releases/approve"), map[string]string{
			"get releases": "yes", "get applicationrevisions": "yes", "create releases": "no", "create releases/cancel": "no", "get pods": "no",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for what, want := range test.want {
				if got := strings.TrimSpace(test.who.may(what).Stdout); got != want {
					t.Errorf("may %s: %s, want %s", what, got, want)
				}
			}
		})
	}
}

func TestApprovalsAreRecordedAsTheCallersAndCannotBeForged(t *testing.T) {
	s := suite.Scenario(t)
	s.Logical.Apply(release)
	carol := given(s, "carol", "manifold-delivery-approve", "create releases/approve", "sre")
	mallory := given(s, "mallory", "manifold-delivery-approve", "create releases/approve")
	ed := given(s, "ed", "edit", "create releases")

	expect.Refused(t, carol.approves(), "no stage waits for approval")
	waits(s)
	expect.Refused(t, ed.approves(), "forbidden", `cannot create resource "releases/approve"`)
	expect.Refused(t, mallory.approves(), `"mallory" is not among the approvers of stage agree`)
	expect.Refused(t, carol.ask("approve", "ReleaseApproval", `,"user":"alice"`+`,"stage":"go"`), "is not one that waits for approval")
	expect.Refused(t, ed.ask("skip", "ReleaseSkip", `,"stage":"agree"`), "WAIT_APPROVAL cannot be skipped")
	forged := `{"status":{"requests":[{"type":"Approve","stage":"agree","attempt":1,"user":"alice","time":"2026-01-01T00:00:00Z"}]}}`
	s.Logical.Kubectl("patch", "release", "web-x2f", "--subresource=status", "--type=merge", "-p", forged)
	s.Logical.Kubectl("patch", "release", "web-x2f", "--type=merge", "-p", forged)
	if got := requests(s); len(got) != 0 {
		t.Fatalf("refused and forged requests are recorded: %+v", got)
	}

	for range 2 { // the second says nothing new
		if result := carol.approves(); result.Code != 0 {
			t.Fatal(result)
		}
	}
	got := requests(s)
	if len(got) != 1 || got[0].User != "carol" || got[0].Type != v1alpha1.RequestApprove || got[0].Stage != "agree" || got[0].Comment != "fine" ||
		!strings.Contains(strings.Join(got[0].Groups, ","), "sre") || got[0].Time.IsZero() {
		t.Errorf("recorded is %+v, want one approval of carol, who is in sre", got)
	}
	s.Logical.Kubectl("patch", "release", "web-x2f", "--subresource=status", "--type=merge", "-p", `{"status":{"requests":null,"message":"goes on"}}`)
	if got := requests(s); len(got) != 1 {
		t.Errorf("who writes a status has taken back an approval: %+v", got)
	}
	if result := ed.ask("cancel", "ReleaseCancellation", `,"rollback":true`); result.Code != 0 {
		t.Error(result)
	}
	if got := requests(s); len(got) != 2 || got[1].User != "ed" || got[1].Type != v1alpha1.RequestCancel || !got[1].Rollback {
		t.Errorf("recorded is %+v, want ed's cancellation behind the approval", got)
	}
	if got := s.Logical.Kubectl("get", "release", "web-x2f", "-o", "jsonpath={.spec.triggeredBy.user}"); got == "the-boss" || got == "" {
		t.Errorf("the release says that it was made by %q", got)
	}
}
