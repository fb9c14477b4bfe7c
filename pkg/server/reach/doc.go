// Package reach lets the API server call a Service whose pods run in clusters: webhooks, conversions and aggregated APIs name one. No
// packet gets from the logical cluster to the address of such a Service or pod, so Resolver answers with a name that stands for one ready
// pod, and Dialer knows these names: it forwards a port of that pod by way of the cluster's API server. What is spoken over that connection,
// TLS above all, is between the logical API server and the pod.
//
// Everything else is resolved and dialled as the stock API server does.
package reach
