// Package server provides the API server. A Builder combines kinds, a store, access control and
// admission into a Server, which serves the API as an http.Handler.
//
// The documentation of the module's root, [orch.io/controlplane], follows a GET and a POST through
// the packages below server/internal.
//
// # Metrics
//
// /metrics has the metrics that dashboards and alerts for the field's API server use, with the same
// names, labels and buckets. A help text begins with the stability of the metric. After a metric is
// deprecated, it is still shown for three releases if it is STABLE, for one release if it is BETA,
// and not at all if it is ALPHA. Serving.ShowHiddenMetricsFor shows the metrics that were hidden
// since the previous release. testdata/metrics.txt lists all metrics.
//
//	apiserver_request_total, _duration_seconds, _sli_duration_seconds  requests and their duration; sli: without webhooks and queues
//	apiserver_response_sizes, apiserver_request_body_size_bytes        sizes of responses and request bodies
//	apiserver_current_inflight_requests, _inqueue_requests             requests that run, and requests that wait
//	apiserver_longrunning_requests, apiserver_watch_events_*           watches and connections, and the events sent to watches
//	apiserver_request_terminations_total, _aborts_total                requests that the server refused or aborted to protect itself
//	apiserver_flowcontrol_*                                            how requests share the server
//	authentication_*, authorization_*, authenticated_user_requests     results of authentication and authorization
//	apiserver_client_certificate_*, serviceaccount_*_tokens_total      credentials of clients
//	apiserver_admission_*, apiserver_conversion_webhook_*              plugins, admission webhooks, conversion webhooks
//	apiserver_audit_*                                                  audit records written and lost
//	etcd_request_duration_seconds, etcd_requests_total, _errors_total  requests to the store, whatever store it is
//	apiserver_resource_objects, _size_estimate_bytes                   stored objects by kind
//	apiserver_storage_size_bytes, _damaged_records, _lost_commits      size and damage of the store
//	apiserver_storage_list_*, apiserver_cache_list_*                   lists, from the store and from memory
//	apiserver_watch_cache_*                                            the watch cache; _history_used_ratio and _history_shortened_total: a full history
//	workqueue_*, apiserver_recovered_panics_total                      controllers
//	leader_election_master_status, _slowpath_total                     leader election by Lease, if several servers may share the store
//	process_*, go_*, kubernetes_build_info                             the process
//
// Label values are words of the server and names of the kinds that it serves. Clients cannot create
// new label values with the content of their requests.
package server
