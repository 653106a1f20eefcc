// Package server is the API server: a Builder makes a Server of kinds, a store, access control and
// admission, and the Server serves the API as an http.Handler.
//
// The documentation of the module's root, [orch.io/controlplane], follows a GET and a POST through the
// packages below server/internal.
//
// # Metrics
//
// /metrics shows what dashboards and alerts for the field's API server ask for, under the
// same names, with the same labels and buckets. Help texts begin with the class of the
// family: STABLE and BETA ones are shown for three releases and for one after they were
// deprecated, ALPHA ones for none; Serving.ShowHiddenMetricsFor brings back what was hidden
// since the release before. testdata/metrics.txt lists all of them.
//
//	apiserver_request_total, _duration_seconds, _sli_duration_seconds  what was asked for, and how long it took; sli: without webhooks and queues
//	apiserver_response_sizes, apiserver_request_body_size_bytes        how much went out and came in
//	apiserver_current_inflight_requests, _inqueue_requests             what is worked on, and waits
//	apiserver_longrunning_requests, apiserver_watch_events_*           watches and connections, and what watches were sent
//	apiserver_request_terminations_total, _aborts_total                what the server refused or cut to protect itself
//	apiserver_flowcontrol_*                                            how callers share the server
//	authentication_*, authorization_*, authenticated_user_requests     who calls, and whether they may
//	apiserver_client_certificate_*, serviceaccount_*_tokens_total      what callers show
//	apiserver_admission_*, apiserver_conversion_webhook_*              plugins, admission webhooks, conversion webhooks
//	apiserver_audit_*                                                  records made, and lost
//	etcd_request_duration_seconds, etcd_requests_total, _errors_total  the store, whatever store it is: a slow one shows here
//	apiserver_resource_objects, _size_estimate_bytes                   objects that there are, by kind
//	apiserver_storage_size_bytes, _damaged_records, _lost_commits      the store's room and what is wrong with it
//	apiserver_storage_list_*, apiserver_cache_list_*                   lists, from the store and from memory
//	apiserver_watch_cache_*                                            the cache; _history_used_ratio and _history_shortened_total: a full history
//	workqueue_*, apiserver_recovered_panics_total                      controllers
//	leader_election_master_status, _slowpath_total                     who leads, by Lease, where several servers may be over the store
//	process_*, go_*, kubernetes_build_info                             the process
//
// Labels are words of the server and names of what it serves; what callers send makes none.
package server
