package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/manifold-dev/manifold/internal/redirects"
	"github.com/manifold-dev/manifold/internal/text"
)

// classify turns the error of a request to the API server at host, on behalf of cluster name, into a report.
func classify(name, host, attempt string, err error) Report {
	if reason, message := certificateTrouble(name, host, err); reason != "" {
		return Report{Reason: reason, Message: message}
	}
	if redirect := new(redirects.Error); errors.As(err, &redirect) {
		return Report{Reason: ReasonNotReady, Void: true, Message: fmt.Sprintf("%s is not the API server of cluster %q: tried to %s, and %s; "+
			"correct the address", host, name, attempt, redirect)}
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Report{Reason: ReasonUnreachable, Message: fmt.Sprintf("%s does not answer: %s; check that the API server of cluster %q "+
			"runs and that this address can be reached from here", host, cause(err), name)}
	}
	switch status.Status().Code {
	case http.StatusUnauthorized:
		return Report{Reason: ReasonUnauthorized, Message: fmt.Sprintf("%s does not accept the stored credential; renew it with "+
			"\"manifold cluster join %s\"", host, name)}
	case http.StatusForbidden:
		return Report{Reason: ReasonForbidden, Message: fmt.Sprintf("the stored credential may not %s at %s; restore its rights with "+
			"\"manifold cluster join %s\"", attempt, host, name)}
	case http.StatusNotFound:
		return Report{Reason: ReasonNotReady, Void: true, Message: fmt.Sprintf("%s answers, but not like a Kubernetes API server that is up: "+
			"tried to %s and found nothing there; check the address", host, attempt)}
	}
	return Report{
		Reason:  ReasonNotReady,
		Void:    status.Status().Code >= http.StatusInternalServerError,
		Message: fmt.Sprintf("%s answers with an error: tried to %s: %s", host, attempt, firstLine(status.Status().Message)),
	}
}

// certificateTrouble reports whether somebody answered who could not prove to be the server. Waiting does not help then, so it is not
// silence.
func certificateTrouble(name, host string, err error) (reason, message string) {
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		message = fmt.Sprintf("the certificate of %s is not signed by the stored CA; if the cluster's CA has changed, run "+
			"\"manifold cluster join %s\" again", host, name)
	case errors.As(err, &hostname):
		message = fmt.Sprintf("the certificate of %s is not valid for that name; correct the address, or set tls-server-name in the "+
			"kubeconfig and run \"manifold cluster join %s\" again", host, name)
	case errors.As(err, &invalid):
		message = fmt.Sprintf("the certificate of %s is not valid: %s; renew it in the cluster", host, invalidity(invalid))
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		message = fmt.Sprintf("%s answers, but not with TLS; correct the address and run \"manifold cluster join %s\" again", host, name)
	default:
		return "", ""
	}
	return ReasonInvalidCredential, message
}

// invalidity names the fault without the times that the error itself would quote.
func invalidity(err x509.CertificateInvalidError) string {
	if err.Reason == x509.Expired {
		return "it has expired or is not yet valid"
	}
	return err.Error()
}

// cause puts the bottom of a transport error into words that stay the same from one attempt to the next. The error's own text
// would not do: it quotes our port, which changes with every connection, and a condition that changes is written.
func cause(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return "its host name does not resolve"
	case errors.As(err, &errno) && !errno.Timeout():
		return errno.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection"
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return firstLine(err.Error())
}

// longestWords bounds what a cluster says in a condition.
const longestWords = 300

// firstLine makes what a cluster says fit for a condition.
func firstLine(said string) string { return text.FirstLine(said, longestWords) }
