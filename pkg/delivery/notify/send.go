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
	// answeredWith says that a receiver has not taken a notice.
	answeredWith = "the receiver answers with status %d"
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
	client, err := s.policy.Client(outbound.Credentials{}, outbound.Limits{Timeout: within, Answer: mostAnswer})
	if err != nil {
		return err
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if form == v1alpha1.NotificationSlack {
		err = sendToSlack(ctx, client, address.String(), p)
	} else {
		err = sendToWebhook(ctx, client, address.String(), secret.Data[v1alpha1.NotificationSecretKey], p)
	}
	if err != nil {
		return errors.New(outbound.Cause(err, outbound.Credentials{})) // the address is a secret
	}
	return nil
}

// sendToWebhook posts a notice as JSON, signed if there is a key.
func sendToWebhook(ctx context.Context, client *http.Client, address string, key []byte, p payload) error {
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "manifold")
	request.Header.Set(HeaderEvent, p.Event)
	request.Header.Set(HeaderID, p.ID)
	if len(key) > 0 {
		request.Header.Set(HeaderSignature, signature(key, body))
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf(answeredWith, answer.StatusCode)
	}
	return nil
}

func signature(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
