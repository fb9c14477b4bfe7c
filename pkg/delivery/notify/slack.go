package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"

	"github.com/manifold-dev/manifold/apis/delivery/v1alpha1"
)

// colors are what Slack marks a message with, by its event. The others have none.
var colors = map[v1alpha1.NotificationEvent]string{
	v1alpha1.EventReleaseSucceeded:  "good",
	v1alpha1.EventReleaseFailed:     "danger",
	v1alpha1.EventReleaseCancelled:  "warning",
	v1alpha1.EventReleaseRolledBack: "warning",
	v1alpha1.EventApprovalRequired:  "warning",
	v1alpha1.EventOutOfSync:         "warning",
	v1alpha1.EventDegraded:          "danger",
}

// sendToSlack posts a notice to an incoming webhook of Slack, or of what understands its messages.
func sendToSlack(ctx context.Context, client *http.Client, address string, p payload) error {
	err := slack.PostWebhookCustomHTTPContext(ctx, address, client, messageOf(p))
	if answer := (slack.StatusCodeError{}); errors.As(err, &answer) {
		return fmt.Errorf(answeredWith, answer.Code)
	}
	return err
}

// messageOf is a notice as a message. What others have written is plain text: it can call nobody, nor lead anywhere.
func messageOf(p payload) *slack.WebhookMessage {
	about := fmt.Sprintf("%s %s/%s", p.Event, p.Namespace, p.Application)
	details := slack.Attachment{
		Color: colors[v1alpha1.NotificationEvent(p.Event)], Fallback: about, Text: slackutilsx.EscapeMessage(p.Message),
		Ts: json.Number(strconv.FormatInt(p.Time.Unix(), 10)),
	}
	for _, field := range []slack.AttachmentField{
		{Title: "Release", Value: p.Release}, {Title: "Revision", Value: p.Revision}, {Title: "Stage", Value: p.Stage}, {Title: "Target", Value: p.Target},
	} {
		if field.Value != "" {
			field.Value, field.Short = slackutilsx.EscapeMessage(field.Value), true
			details.Fields = append(details.Fields, field)
		}
	}
	return &slack.WebhookMessage{Text: slackutilsx.EscapeMessage(about), Attachments: []slack.Attachment{details}}
}
