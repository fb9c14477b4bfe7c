package health

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const host = "https://east.example.com:6443/"

// sent wraps an error as net/http does for a request that did not get an answer.
func sent(err error) error {
	return &url.Error{Op: "Get", URL: host + "api/v1/namespaces/kube-system", Err: err}
}

func dialed(err error) error {
	return sent(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443}, Err: err})
}

func TestClassify(t *testing.T) {
	namespaces := schema.GroupResource{Resource: "namespaces"}
	for name, test := range map[string]struct {
		err    error
		reason string
		void   bool
		says   []string
	}{
		"a refused connection is silence": {
			err:    dialed(&os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}),
			reason: ReasonUnreachable, says: []string{host, "connection refused", `cluster "east"`, "check"},
		},
		"a reset connection is silence, whatever our port was": {
			err: sent(&net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 51234}, Err: &os.SyscallError{
				Syscall: "read", Err: syscall.ECONNRESET}}),
			reason: ReasonUnreachable, says: []string{"connection reset by peer"},
		},
		"no answer in time is silence": {
			err: sent(context.DeadlineExceeded), reason: ReasonUnreachable, says: []string{"no answer in time"},
		},
		"a dial that times out is silence": {
			err: dialed(os.ErrDeadlineExceeded), reason: ReasonUnreachable, says: []string{"no answer in time"},
		},
		"a host name that does not resolve is silence": {
			err:    dialed(&net.DNSError{Err: "no such host", Name: "east.example.com", Server: "10.0.0.53:53"}),
			reason: ReasonUnreachable, says: []string{"does not resolve"},
		},
		"a connection that ends early is silence": {
			err: sent(io.EOF), reason: ReasonUnreachable, says: []string{"closed the connection"},
		},
		"anything else without an answer is silence, told by its innermost words": {
			err: sent(fmt.Errorf("outer: %w", errors.New("strange trouble"))), reason: ReasonUnreachable, says: []string{"strange trouble;"},
		},
		"a server with another CA is not the one that joined": {
			err: sent(x509.UnknownAuthorityError{}), reason: ReasonInvalidCredential, says: []string{"not signed by the stored CA", "join east"},
		},
		"a server with a certificate for another name is not the one that joined": {
			err:    sent(x509.HostnameError{Certificate: &x509.Certificate{}, Host: "east.example.com"}),
			reason: ReasonInvalidCredential, says: []string{"not valid for that name"},
		},
		"an expired certificate is named without its times": {
			err:    sent(x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired, Detail: "current time 2026-11-20"}),
			reason: ReasonInvalidCredential, says: []string{"has expired or is not yet valid; renew"},
		},
		"a server without TLS": {
			err: sent(http.ErrSchemeMismatch), reason: ReasonInvalidCredential, says: []string{"not with TLS"},
		},
		"a credential that the cluster does not know": {
			err: apierrors.NewUnauthorized("Unauthorized"), reason: ReasonUnauthorized, says: []string{host, `"manifold cluster join east"`},
		},
		"a credential without rights names the right": {
			err:    apierrors.NewForbidden(namespaces, "kube-system", errors.New("no")),
			reason: ReasonForbidden, says: []string{"may not get namespace kube-system", "join east"},
		},
		"an API server whose storage is down is not ready": {
			err: apierrors.NewInternalError(errors.New("etcdserver: no leader")), reason: ReasonNotReady, void: true, says: []string{"no leader"},
		},
		"a load balancer without a server behind it": {
			err: apierrors.NewGenericServerResponse(502, "get", namespaces, "", "", 0, true), reason: ReasonNotReady, void: true,
		},
		"a server that has too much to do is there": {
			err: apierrors.NewTooManyRequestsError("later"), reason: ReasonNotReady, says: []string{"later"},
		},
		"what a cluster says does nothing to a terminal": {
			err: apierrors.NewInternalError(errors.New("a\x1b[2J\u202eb\xff")), reason: ReasonNotReady, void: true, says: []string{`a^[[2J\u202eb\xff`},
		},
		"a web server that is no API server": {
			err: apierrors.NewGenericServerResponse(404, "get", namespaces, "", "", 0, true), reason: ReasonNotReady, void: true,
			says: []string{"not like a Kubernetes API server"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := classify("east", host, "get namespace kube-system", test.err)
			if got.Reason != test.reason {
				t.Errorf("reason %s, want %s (%s)", got.Reason, test.reason, got.Message)
			}
			if heard := test.reason != ReasonUnreachable && test.reason != ReasonInvalidCredential && !test.void; got.Heard() != heard {
				t.Errorf("heard is %t, want %t", got.Heard(), heard)
			}
			for _, words := range test.says {
				if !strings.Contains(got.Message, words) {
					t.Errorf("message %q does not say %q", got.Message, words)
				}
			}
			for _, unstable := range []string{"51234", "2026"} {
				if strings.Contains(got.Message, unstable) {
					t.Errorf("message %q changes with every attempt: it has %q", got.Message, unstable)
				}
			}
		})
	}
}

func TestReady(t *testing.T) {
	const grace = 40 * time.Second
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	ready := Report{Reason: ReasonReady, Message: "well", UID: "1"}
	unready := Report{Reason: ReasonNotReady, Message: "etcd", UID: "1"}
	silent := Report{Reason: ReasonUnreachable, Message: "refused"}
	broken := Report{Reason: ReasonInvalidCredential, Message: "no secret"}
	void := Report{Reason: ReasonNotReady, Message: "bad gateway", Void: true}
	lost := Report{Reason: ReasonUnreachable, Message: "bad gateway"}
	type step struct {
		at     int
		report Report
	}
	is := func(status metav1.ConditionStatus, r Report) *metav1.Condition {
		return &metav1.Condition{Type: "Ready", Status: status, Reason: r.Reason, Message: r.Message}
	}
	was := is(metav1.ConditionTrue, ready)

	for name, test := range map[string]struct {
		last  *metav1.Condition
		steps []step
		now   int
		want  *metav1.Condition
		again time.Duration
	}{
		"before the first probe has ended nothing changes": {last: was, now: 100, want: was},
		"a cluster that answers is ready":                  {steps: []step{{0, ready}}, want: was},
		"a cluster that says so is not ready, at once": {
			last: was, steps: []step{{0, ready}, {10, unready}}, now: 10, want: is(metav1.ConditionFalse, unready),
		},
		"a ready cluster stays ready for the grace period": {
			last: was, steps: []step{{0, ready}, {10, silent}, {20, silent}}, now: 39, want: was, again: time.Second,
		},
		"then it is unknown": {
			last: was, steps: []step{{0, ready}, {10, silent}, {20, silent}}, now: 40, want: is(metav1.ConditionUnknown, silent),
		},
		"an answer ends the silence": {
			last: was, steps: []step{{0, ready}, {10, silent}, {30, ready}, {50, silent}}, now: 69, want: was, again: time.Second,
		},
		"our own restart gives a ready cluster the grace period from then on": {
			last: was, steps: []step{{1000, silent}}, now: 1030, want: was, again: 10 * time.Second,
		},
		"a cluster that has never answered is unknown at once": {
			steps: []step{{0, silent}}, want: is(metav1.ConditionUnknown, silent),
		},
		"a cluster that was in trouble before we started gets the news at once": {
			last: is(metav1.ConditionFalse, broken), steps: []step{{0, silent}}, want: is(metav1.ConditionUnknown, silent),
		},
		"an unknown cluster stays unknown, with what is the matter now": {
			last: is(metav1.ConditionUnknown, Report{Reason: ReasonUnreachable, Message: "timeout"}), steps: []step{{0, silent}},
			want: is(metav1.ConditionUnknown, silent),
		},
		"a cluster that was not ready keeps its reason for the grace period": {
			last: is(metav1.ConditionFalse, unready), steps: []step{{0, unready}, {10, silent}}, now: 10,
			want: is(metav1.ConditionFalse, unready), again: 30 * time.Second,
		},
		"an answer without the cluster is no good, at once": {
			last: was, steps: []step{{0, ready}, {10, void}}, now: 10, want: is(metav1.ConditionFalse, void), again: 30 * time.Second,
		},
		"and silence once it has lasted": {
			last: is(metav1.ConditionFalse, void), steps: []step{{0, ready}, {10, void}, {30, silent}, {39, void}}, now: 40,
			want: is(metav1.ConditionUnknown, lost),
		},
		"it does not end a silence": {
			last: is(metav1.ConditionUnknown, silent), steps: []step{{0, silent}, {10, void}}, now: 10, want: is(metav1.ConditionUnknown, lost),
		},
		"a broken credential counts at once": {
			last: was, steps: []step{{0, ready}, {5, broken}}, now: 5, want: is(metav1.ConditionFalse, broken),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var history History
			for _, step := range test.steps {
				history = history.Record(step.report, at(step.at))
			}
			got, again := Ready(test.last, history, grace, at(test.now))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if again != test.again {
				t.Errorf("look again in %s, want %s", again, test.again)
			}
		})
	}
}

func TestSilent(t *testing.T) {
	for name, test := range map[string]struct {
		ready *metav1.Condition
		want  bool
	}{
		"a cluster that has not been tried":     {},
		"one that is ready":                     {ready: &metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonReady}},
		"one that says that it is not ready":    {ready: &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonNotReady}},
		"one that does not answer":              {ready: &metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonUnreachable}, want: true},
		"one that has only just answered again": {ready: &metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonFenced}, want: true},
		"one that does not let us in":           {ready: &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonUnauthorized}, want: true},
		"one in whose place another answers":    {ready: &metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonDifferentCluster}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Silent(test.ready); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
