package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
	"github.com/manifold-dev/manifold/internal/outbound"
)

const (
	// within is how long a receiver may take.
	within = 10 * time.Second
	// mostAnswer bounds what is read of an answer, which says nothing.
	mostAnswer = 4 << 10
)

// Headers of a webhook's request.
const (
	// HeaderEvent is the event, HeaderID the id of the notice: one that is sent again has the same.
	HeaderEvent = "X-Manifold-Event"
	HeaderID    = "X-Manifold-Delivery"
	// HeaderSignature is "sha256=" and the HMAC of the body, in hexadecimal digits, with the key of the Secret.
	HeaderSignature = "X-Signature"
)

// payload is the body of a webhook's request.
type payload struct {
	ID          string    `json:"id"`
	Event       string    `json:"event"`
	Time        time.Time `json:"time"`
	Namespace   string    `json:"namespace"`
	Application string    `json:"application"`
	Release     string    `json:"release,omitempty"`
	Revision    string    `json:"revision,omitempty"`
	Phase       string    `json:"phase,omitempty"`
	Stage       string    `json:"stage,omitempty"`
	Target      string    `json:"target,omitempty"`
	Message     string    `json:"message,omitempty"`
}

// sender sends notices.
type sender struct{ policy outbound.Policy }

// send tells of something, to the address in a Secret.
func (s sender) send(ctx context.Context, form v1alpha1.NotificationType, secret *corev1.Secret, p payload) error {
	raw := strings.TrimSpace(string(secret.Data[v1alpha1.NotificationSecretURL]))
	if raw == "" {
		return fmt.Errorf("read the address: Secret %s/%s has no %s", secret.Namespace, secret.Name, v1alpha1.NotificationSecretURL)
	}
	address, err := s.policy.URL(raw, outbound.Credentials{})
	if err != nil {
		return fmt.Errorf("%s of Secret %s/%s: %w", v1alpha1.NotificationSecretURL, secret.Namespace, secret.Name, err)
	}
	body, err := bodyOf(form, p)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New(outbound.Cause(err, outbound.Credentials{}))
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "manifold")
	if form != v1alpha1.NotificationSlack {
		request.Header.Set(HeaderEvent, p.Event)
		request.Header.Set(HeaderID, p.ID)
		if key := secret.Data[v1alpha1.NotificationSecretKey]; len(key) > 0 {
			request.Header.Set(HeaderSignature, signature(key, body))
		}
	}
	return s.do(request)
}

func (s sender) do(request *http.Request) error {
	client, err := s.policy.Client(outbound.Credentials{}, outbound.Limits{Timeout: within, Answer: mostAnswer})
	if err != nil {
		return err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(request)
	if err != nil {
		return errors.New(outbound.Cause(err, outbound.Credentials{})) // the address is a secret
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("the receiver answers with status %d", answer.StatusCode)
	}
	return nil
}

func signature(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

func bodyOf(form v1alpha1.NotificationType, p payload) ([]byte, error) {
	if form == v1alpha1.NotificationSlack {
		return json.Marshal(map[string]string{"text": slack(p)})
	}
	return json.Marshal(p)
}

// slack is the text of a message. What others have written can call nobody, nor lead anywhere.
func slack(p payload) string {
	parts := []string{fmt.Sprintf("*%s* %s/%s", p.Event, p.Namespace, p.Application)}
	for _, part := range []struct{ name, value string }{{"release", p.Release}, {"revision", p.Revision}, {"stage", p.Stage}, {"target", p.Target}} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	text := strings.Join(parts, ", ")
	if p.Message != "" {
		text += ": " + p.Message
	}
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
