// Package notify tells others of what happens in applications: by webhooks, and in Slack.
//
// What there is to tell follows from the status of an Application or a Release as it is, not from its changes, so nothing is missed while nobody
// looks. What was told is an annotation beside that status. A notice is sent, and then noted: one whose note is lost with the process is sent
// again, with the same id, by which its receiver knows it. One that cannot be sent is tried again, less and less often, for an hour.
//
// Messages to Slack are made and posted by slack-go, whose requests go through our own policy of who may be called. Libraries for all kinds of
// receivers, such as argoproj/notifications-engine, have HTTP clients of their own, which a user's address could lead into our network.
package notify
