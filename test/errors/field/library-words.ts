import type { Classification } from '../../../src/contract/error-kind.ts';

/** A message as a library or service words it, without status, code or name beside it. */
export interface LibraryMessage {
  readonly source: string;
  readonly classification: Classification;
  readonly text: string;
}

const said = (source: string, texts: Readonly<Record<Classification, readonly string[]>>): readonly LibraryMessage[] =>
  (['transient', 'permanent'] as const).flatMap((classification) => texts[classification].map((text) => ({ source, classification, text })));

/**
 * Collected from sources and documentation before the tables were tuned, each with its class by: permanent is what names authentication,
 * authorization, invalid or malformed input, schema, a thing not found by its name, unsupported, or quota. Placeholders are filled in.
 */
export const LIBRARY_MESSAGES: readonly LibraryMessage[] = [
  // apache/kafka, clients/.../protocol/Errors.java
  ...said('kafka', {
    transient: [
      'The server experienced an unexpected error when processing the request', 'The client received an unexpected error code when processing the response',
      'This message has failed its CRC checksum, exceeds the valid size, or is otherwise corrupt.', 'There is no leader for this topic-partition as we are in the middle of a leadership election.',
      'This server is not the leader for that topic-partition.', 'The request timed out.', 'The broker is not available.', 'The replica is not available for the requested topic-partition',
      'The controller moved to another broker.', 'The server disconnected before a response was received.', "The coordinator is loading and hence can't process requests.", 'The coordinator is not available.',
      'This is not the correct coordinator.', 'Messages are rejected since there are fewer in-sync replicas than required.', 'Messages are written to the log, but to fewer in-sync replicas than required.',
      'The group is rebalancing, so a rejoin is needed.', 'Disk error when trying to access log file on disk.', 'This is not the correct controller for this cluster.',
    ],
    permanent: [
      'The requested fetch size is invalid.', 'The request included a message larger than the max message size the server will accept.', 'The metadata field of the offset request was too large.',
      'The request attempted to perform an operation on an invalid topic.', 'Produce request specified an invalid value for required acks.', 'Specified group generation id is not valid.', 'The configured groupId is invalid',
      'Topic authorization failed.', 'Group authorization failed.', 'The timestamp of the message is out of acceptable range.', 'The broker does not support the requested SASL mechanism.', 'Request is not valid given the current SASL state.',
      'The committing offset data size is not valid', 'Topic with this name already exists.', 'Number of partitions is below 1.', 'Replication factor is below 1 or larger than the number of available brokers.',
    ],
  }),
  // curl/curl, lib/strerror.c, curl_easy_strerror and the texts for Winsock
  ...said('curl', {
    transient: [
      "Couldn't resolve host name", "Couldn't resolve proxy name", "Couldn't connect to server", 'FTP: weird server reply', 'Transferred a partial file', 'Timeout was reached', 'SSL connect error',
      'Server returned nothing (no headers, no data)', 'Failed sending data to the peer', 'Failure when receiving data from the peer', 'Error in the SSH layer', 'Socket not ready for send/recv', 'Unknown error', 'Out of memory',
      'Failed to shut down the SSL connection', 'Network has been reset', 'No buffer space', 'Call would block', 'Host down', 'Network unreachable', 'Connection was aborted', 'Out of file descriptors', 'Remote error',
    ],
    permanent: [
      'Unsupported protocol', 'URL using bad/illegal format or missing URL', 'Access denied to remote resource', 'A libcurl function was given a bad argument', 'User specified an unknown telnet option', 'Malformed telnet option',
      'Peer certificate cannot be authenticated with known CA certificates', 'Unrecognized HTTP Content-Encoding', 'Invalid LDAP URL', 'Login denied', 'TFTP: File Not Found', 'Remote file not found', 'TFTP: No such user',
      'Maximum file size exceeded', 'Protocol option is unsupported', 'Address family not supported', 'Invalid arguments',
    ],
  }),
  // mysql/mysql-server, libmysql/errmsg.cc and share/messages_to_clients.txt
  ...said('mysql', {
    transient: [
      'Unknown MySQL error', "Can't connect to local MySQL server through socket '/tmp/mysql.sock' (2)", "Can't connect to MySQL server on 'db-1:3306' (111)", "Unknown MySQL server host 'db-1' (-3)", 'MySQL server has gone away',
      'MySQL client ran out of memory', 'Error in server handshake', 'Lost connection to MySQL server during query', 'SSL connection error: error:00000000:lib(0)::reason(0)',
      "Lost connection to MySQL server at 'reading initial communication packet', system error: 0", "Can't open shared memory; no answer from server (2)", 'Lock wait timeout exceeded; try restarting transaction',
      'Deadlock found when trying to get lock; try restarting transaction', 'Too many connections', 'Server shutdown in progress', 'Query execution was interrupted',
    ],
    permanent: [
      'Invalid parameter number', 'Using unsupported buffer type: 246  (parameter: 3)', 'This feature is not implemented yet', 'Compression protocol not supported with asynchronous protocol', 'File name is too long', 'Malformed packet',
      "Access denied for user 'app'@'10.0.0.7' (using password: YES)", "Unknown database 'billing'", "Unknown column 'colour' in 'field list'", "Table 'shop.orders' doesn't exist", "Data too long for column 'name' at row 1",
      'You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near \'FORM t\' at line 1', "Incorrect integer value: 'abc' for column 'qty' at row 1",
      "Column 'email' cannot be null", "Field 'id' doesn't have a default value",
    ],
  }),
  // postgres/postgres, errmsg() of the server and of libpq
  ...said('postgresql', {
    transient: [
      'the database system is starting up', 'the database system is shutting down', 'the database system is in recovery mode', 'the database system is not yet accepting connections',
      'remaining connection slots are reserved for roles with the SUPERUSER attribute', 'sorry, too many clients already', 'terminating connection due to administrator command', 'terminating connection because of crash of another server process',
      'terminating connection due to conflict with recovery', 'canceling statement due to conflict with recovery', 'canceling statement due to lock timeout', 'could not serialize access due to concurrent update',
      'could not serialize access due to read/write dependencies among transactions', 'deadlock detected', 'could not obtain lock on row in relation "jobs"', 'server closed the connection unexpectedly', 'SSL SYSCALL error: EOF detected',
      'could not receive data from server: Connection timed out', 'out of shared memory', 'cannot execute INSERT in a read-only transaction', 'database "app" is being accessed by other users',
      'could not fork new process for connection: Resource temporarily unavailable', 'lost synchronization with server: got message type "S", length 1701',
    ],
    permanent: [
      'relation "orders" does not exist', 'column "colour" does not exist', 'database "app" does not exist', 'role "reader" does not exist', 'permission denied for table invoices', 'password authentication failed for user "app"',
      'no pg_hba.conf entry for host "10.0.0.7", user "app", database "app", no encryption', 'syntax error at or near "FORM"', 'invalid input syntax for type integer: "abc"', 'duplicate key value violates unique constraint "users_email_key"',
      'null value in column "email" of relation "users" violates not-null constraint', 'value too long for type character varying(20)', 'division by zero', 'cannot convert infinity to numeric', 'column "total" must appear in the GROUP BY clause or be used in an aggregate function',
      'must be owner of table invoices', 'invalid authentication method "radius": not supported by this build', 'operator does not exist: integer = text', 'column number 12 is out of range 0..7',
    ],
  }),
  // redis/redis, shared.* and addReplyError
  ...said('redis', {
    transient: [
      'LOADING Redis is loading the dataset in memory', 'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.', "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
      'CLUSTERDOWN The cluster is down', 'CLUSTERDOWN Hash slot not served', 'TRYAGAIN Multiple keys request during rehashing of slot', 'NOREPLICAS Not enough good replicas to write.', "READONLY You can't write against a read only replica.",
      'ERR max number of clients reached', 'IOERR error or timeout connecting to the client', "ERR Can't start thread", 'NOMASTERLINK Can\'t SYNC while not connected with my master', 'UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)',
      'NOQUORUM 1 usable Sentinels. Not enough available Sentinels to reach the specified quorum for this master', 'ERR Background save already in progress',
    ],
    permanent: [
      'NOAUTH Authentication required.', 'WRONGPASS invalid username-password pair or user is disabled.', "NOPERM this user has no permissions to run the 'flushall' command", 'WRONGTYPE Operation against a key holding the wrong kind of value',
      'ERR no such key', 'ERR syntax error', 'ERR index out of range', 'NOPROTO unsupported protocol version', 'ERR value is not an integer or out of range', "ERR unknown command 'FOO', with args beginning with: 'bar'",
      "ERR wrong number of arguments for 'get' command", 'ERR Invalid IP address or hostname specified', 'ERR invalid cursor', 'ERR The bit argument must be 1 or 0.', 'NOSCRIPT No matching script. Please use EVAL.',
    ],
  }),
  // grpc/grpc-go and grpc/grpc core
  ...said('grpc', {
    transient: [
      'all SubConns are in TransientFailure', 'grpc: the connection is closing', 'grpc: the connection is drained', 'grpc: the server has been stopped', 'grpc: timed out when dialing', 'transport is closing', 'Stream removed',
      'received GOAWAY with no active streams', 'RLS call throttled at client side', 'no SubConn is available', 'produced zero addresses', 'connection active but health check failed. status=NOT_SERVING', 'Socket closed', 'keepalive watchdog timeout',
      'failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:443: Failed to connect to remote host: Connection refused', 'weighted-target: no targets to pick from', 'got too many pings from the client',
    ],
    permanent: [
      'invalid JWT', 'unknown service shop.v1.Orders', 'unknown method Buy for service shop.v1.Orders', 'client does not support compressor "zstd"', 'malformed method name: "Buy"', 'received message larger than max (5242880 vs. 4194304)',
      'invalid method name: should start with /', 'credentials: audience cannot be empty', 'ClientHandshake() is not supported for server credentials', 'autosharding: keyHeaderName field is required', 'authz: requires refresh interval(0s) greater than 0s',
    ],
  }),
  // golang/go: net, net/http, io, compress, crypto/tls; gorilla/websocket
  ...said('go', {
    transient: [
      'unexpected EOF', 'read tcp 10.0.0.2:51000->10.0.0.7:443: read: connection reset by peer', 'dial tcp: lookup api.example.com on 10.0.0.10:53: no such host', 'dial tcp 10.0.0.7:443: connect: connection refused', 'i/o timeout',
      'context deadline exceeded', 'net/http: TLS handshake timeout', 'http: server closed idle connection', 'http2: client connection lost', 'http2: server sent GOAWAY and closed the connection; LastStreamID=1999, ErrCode=NO_ERROR, debug=""',
      'use of closed network connection', 'tls: bad record MAC', 'remote error: tls: internal error', 'websocket: bad handshake', 'websocket: close 1006 (abnormal closure): unexpected EOF', 'write: broken pipe', 'http2: stream closed',
      'lookup api.example.com: server misbehaving', 'unexpected end of file', 'gzip: invalid checksum', 'sql: database is closed', 'driver: bad connection', 'http: proxy error: EOF', 'net/http: HTTP/1.x transport connection broken: EOF',
    ],
    permanent: [
      'x509: certificate signed by unknown authority', 'x509: certificate is valid for a.example, not b.example', 'unsupported protocol scheme ""', 'http: no Host in request URL', 'parse "http://[::1": missing \']\' in host',
      'strconv.Atoi: parsing "abc": invalid syntax', "json: cannot unmarshal string into Go struct field Order.qty of type int", "invalid character 'x' looking for beginning of value", 'sql: expected 2 arguments, got 1', 'json: unknown field "colour"',
      'time: unknown unit "y" in duration "3y"', 'exec: "kubectl": executable file not found in $PATH', 'open /etc/app.yaml: no such file or directory', 'net/http: invalid method "GE T"', 'template: page: function "upper" not defined',
    ],
  }),
  // psf/requests, urllib3, http.client, aiohttp, httpx
  ...said('python', {
    transient: [
      "('Connection aborted.', RemoteDisconnected('Remote end closed connection without response'))", "HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=10)",
      "HTTPSConnectionPool(host='api.example.com', port=443): Max retries exceeded with url: /v1 (Caused by NewConnectionError('<urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection refused'))",
      'Response ended prematurely', 'Connection broken: IncompleteRead(512 bytes read, 1536 more expected)', 'bad handshake: SysCallError(-1, \'Unexpected EOF\')', 'select timed out', 'Pool is closed.', 'getaddrinfo returns an empty list',
      '[Errno -3] Temporary failure in name resolution', 'EOF occurred in violation of protocol (_ssl.c:1129)', 'Server disconnected', 'Server disconnected without sending a response.', '[Errno 104] Connection reset by peer', 'Cannot connect to host api.example.com:443 ssl:default [None]',
      'peer closed connection without sending complete message body (incomplete chunked read)', 'QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00', 'Response payload is not completed', '[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1129)',
    ],
    permanent: [
      "Invalid URL 'htp//x': No scheme supplied. Perhaps you meant https://htp//x?", "No connection adapters were found for 'ftp://x'", "Invalid header value b'a\\nb'", "'10.0.0.1:x' is not a valid host or port",
      "Request URL is missing an 'http://' or 'https://' protocol.", "could not convert string to float: 'abc'", "invalid literal for int() with base 10: 'abc'", "[Errno 2] No such file or directory: 'x.csv'", "[Errno 13] Permission denied: '/etc/shadow'",
      "Object of type datetime is not JSON serializable", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte", "No module named 'pandas'", "unsupported operand type(s) for +: 'int' and 'str'",
      "get() missing 1 required positional argument: 'url'", "search() got an unexpected keyword argument 'limit'", "time data '2024-13-01' does not match format '%Y-%m-%d'", "expected httplib.Message, got <class 'dict'>.",
    ],
  }),
  // nodejs/node, undici, ws, ioredis, node-redis
  ...said('node', {
    transient: [
      'socket hang up', 'other side closed', 'Client network socket disconnected before secure TLS connection was established', 'Connect Timeout Error', 'Headers Timeout Error', 'Premature close', 'terminated', 'read ECONNRESET',
      'getaddrinfo EAI_AGAIN api.example.com', 'The pending stream has been canceled (caused by: connect ECONNREFUSED 10.0.0.7:443)', 'WebSocket was closed before the connection was established', 'Cluster is disconnected.', 'None of startup nodes is available',
      'Command timed out', 'All the root nodes are unavailable', 'None of the sentinels are available', 'Socket closed unexpectedly', 'The client is offline', 'Scan iteration was interrupted by a Sentinel master change', 'Could not find shard', 'Node is disconnected',
      "Stream isn't writeable and enableOfflineQueue options is false", 'Parse Error: Expected HTTP/', 'New streams cannot be created after receiving a GOAWAY', 'Connection is closed.', 'kEngine timed out or was reset',
    ],
    permanent: [
      'Invalid URL', 'The "path" argument must be of type string. Received undefined', "Cannot find module 'left-pad'", 'ENOENT: no such file or directory, open \'/tmp/x\'', "EACCES: permission denied, open '/etc/shadow'", 'Unexpected token \'<\', "<!DOCTYPE "... is not valid JSON',
      'Invalid character in header content ["x-name"]', 'Protocol "ftp:" not supported. Expected "http:"', 'The value of "size" is out of range. It must be >= 0 && <= 100. Received 101', 'Max payload size exceeded', 'unable to verify the first certificate',
      "Hostname/IP does not match certificate's altnames: Host: a.example. is not in the cert's altnames: DNS:b.example", 'Unknown encoding: utf-9', 'Cannot convert a Symbol value to a number', 'Invalid db query parameter', 'Unsupported MIME type image/x-foo',
    ],
  }),
  // apache/cassandra and the DataStax drivers
  ...said('cassandra', {
    transient: [
      'Cannot achieve consistency level QUORUM', 'Not enough replicas available for query at consistency LOCAL_QUORUM (2 required but only 1 alive)', 'Operation timed out - received only 1 responses.', 'All host(s) tried for query failed (no host was tried)',
      'Server is shutting down', 'Cannot read from a bootstrapping node', 'Operation failed - received 0 responses and 1 failures', 'Connection has been closed', 'Pool is busy (no available connection and the queue has reached its max size 256)', 'Request is overloaded, node is too busy',
    ],
    permanent: [
      'unconfigured table orders', "Keyspace 'shop' does not exist", 'line 1:7 no viable alternative at input \'FORM\' (SELECT [FORM]...)', 'Undefined column name colour', 'Invalid STRING constant (abc) for "qty" of type int', 'Provided username app and/or password are incorrect',
      'User app has no SELECT permission on <table shop.orders> or any of its parents', 'Missing mandatory PRIMARY KEY part id',
    ],
  }),
  // elastic/elasticsearch and opensearch
  ...said('elasticsearch', {
    transient: [
      'all shards failed', 'blocked by: [SERVICE_UNAVAILABLE/1/state not recovered / initialized];', 'blocked by: [SERVICE_UNAVAILABLE/2/no master];', 'rejected execution of org.elasticsearch.transport.TransportService$7@1234abcd on EsThreadPoolExecutor[bulk queue capacity = 2000]',
      '[parent] Data too large, data for [<http_request>] would be [1.1gb], which is larger than the limit of [1gb]', '[node-1][10.0.0.7:9300] Node not connected', 'primary shard is not active Timeout: [1m], request: [index {[logs][1]}]', 'no master discovered', 'No Living connections',
      'failed to process cluster event (put-mapping) within 30s', 'No shard available for [get [logs][_doc][1]: routing [null]]',
    ],
    permanent: [
      'no such index [orders]', 'failed to parse field [qty] of type [integer] in document with id \'1\'', 'Unknown key for a START_OBJECT in [quary].', 'No mapping found for [price] in order to sort on', 'unable to authenticate user [app] for REST request [/_search]',
      'action [indices:data/write/bulk] is unauthorized for user [app]', 'mapping set to strict, dynamic introduction of [colour] within [_doc] is not allowed', 'invalid index name [Orders], must be lowercase', 'Limit of total fields [1000] has been exceeded',
    ],
  }),
  // Docs of Amazon S3, EC2, DynamoDB, SQS, Lambda, STS
  ...said('aws', {
    transient: [
      'Please reduce your request rate.', 'We encountered an internal error. Please try again.', 'Your socket connection to the server was not read from or written to within the timeout period.', 'Rate exceeded', 'The request processing has failed because of an unknown error, exception or failure.',
      'A conflicting conditional operation is currently in progress against this resource. Try again.', 'Insufficient capacity.', 'Request limit exceeded.', 'The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.',
      'We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-east-1a).', 'Task timed out after 3.01 seconds', 'RequestId: 8f4c Error: Runtime exited with error: signal: killed', 'Transaction is ongoing for the item', 'The service is unable to handle request right now',
    ],
    permanent: [
      'The specified bucket does not exist', 'The specified key does not exist.', 'Access Denied', 'The AWS Access Key Id you provided does not exist in our records.', 'The request signature we calculated does not match the signature you provided. Check your key and signing method.',
      'The XML you provided was not well-formed or did not validate against our published schema', 'The security token included in the request is expired', 'User: arn:aws:iam::123456789012:user/app is not authorized to perform: sqs:SendMessage on resource: arn:aws:sqs:us-east-1:123456789012:q',
      'The specified method is not allowed against this resource.', 'One or more parameter values were invalid: Missing the key id in the item', 'Requested resource not found', 'The specified queue does not exist for this wsdl version.', 'Your proposed upload exceeds the maximum allowed object size.',
      'Could not load credentials from any providers', 'The provided token is malformed or otherwise invalid.',
    ],
  }),
  // Docs of Google Cloud, Azure, Stripe, GitHub, Slack, Twilio, Notion
  ...said('services', {
    transient: [
      'The service is currently unavailable.', 'Internal error encountered.', 'Backend Error', 'An internal error occurred, please try again', 'The server is busy. Please retry your request.', 'Operation could not be completed within the specified time.', 'Server encountered an internal error. Please try again after some time.',
      'An error occurred while communicating with Stripe', 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.', "We couldn't respond to your request in time. Sorry about that. Please try resubmitting your request and contact us if the problem persists.",
      "The server can't process your request due to an internal error, because of which an unknown error occurred", 'Our servers experienced an error. Try your request again.', 'An unknown error occurred', 'Unknown failure', 'Unicorn! This page is taking too long to load.', 'Lock contention on the account, retry shortly',
      'The request should be retried', 'Conflict occurred while saving. Please try again.', 'Upstream service responded with an unexpected payload', 'Partial outage: some requests are failing', 'The instance failed to start',
    ],
    permanent: [
      'API key not valid. Please pass a valid API key.', 'Request had insufficient authentication scopes.', 'The caller does not have permission', "Quota exceeded for quota metric 'Queries' and limit 'Queries per day' of service 'maps.googleapis.com'", 'No such customer: \'cus_123\'', 'Your card was declined.',
      'Invalid API Key provided: sk_test_****', 'Received unknown parameter: colour', 'Missing required param: amount.', 'Amount must be at least $0.50 usd', 'Bad credentials', 'Resource not accessible by integration', 'Validation Failed', 'Invalid request. Inputs did not match the schema.',
      "The specified blob does not exist.", 'Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.', 'The resource you requested could not be found.', "The 'To' number +1555 is not a valid phone number.", 'body failed validation: body.parent should be defined, instead was `undefined`.',
      'Could not find page with ID: 7f. Make sure the relevant pages and databases are shared with your integration.', 'invalid_auth', 'channel_not_found', 'missing_scope', 'Problems parsing JSON', 'Unsupported grant type: implicit',
    ],
  }),
  // openai, @anthropic-ai/sdk, @google/genai, docs of their APIs, as tools pass them on
  ...said('models', {
    transient: [
      'Overloaded', 'The server had an error while processing your request. Sorry about that!', 'The engine is currently overloaded, please try again later', 'The model is overloaded. Please try again later.', 'Connection error.', 'Request timed out.', 'Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.',
      'stream ended without producing a Message with role=assistant', 'An error occurred while streaming the response', 'Error in input stream', 'This request would exceed the rate limit of 50 requests per minute', 'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
    ],
    permanent: [
      'Incorrect API key provided: sk-12***34. You can find your API key at https://platform.openai.com/account/api-keys.', 'You exceeded your current quota, please check your plan and billing details.', 'The model `gpt-9` does not exist or you do not have access to it.',
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", 'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.', 'invalid x-api-key', 'messages: at least one message is required', "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user'.",
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", 'prompt is too long: 210000 tokens > 200000 maximum', "Invalid schema for function 'search': schema must be a JSON Schema of 'type: \"object\"'", 'Could not parse response content as the length limit was reached',
      'Unrecognized request argument supplied: temprature', 'Could not resolve authentication method. Expected either apiKey or adminAPIKey to be set.',
    ],
  }),
  // moby/moby, distribution/distribution, kubernetes/kubernetes, helm
  ...said('containers', {
    transient: [
      'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?', 'toomanyrequests: You have reached your pull rate limit.', 'net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)', 'received unexpected HTTP status: 503 Service Unavailable',
      'the server is currently unable to handle the request', 'etcdserver: request timed out', 'etcdserver: leader changed', 'etcdserver: no leader', 'The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?', 'Unable to connect to the server: EOF', 'etcdserver: too many requests',
      'the object has been modified; please apply your changes to the latest version and try again', 'container runtime is down', 'error trying to reach service: dial tcp 10.1.0.4:8443: connect: no route to host', 'Timeout: request did not complete within requested timeout', 'another operation (install/upgrade/rollback) is in progress',
      'failed calling webhook "v.example.com": failed to call webhook: Post "https://v.svc:443": EOF', 'The node was low on resource: memory.', 'back-off restarting failed container',
    ],
    permanent: [
      'manifest unknown: manifest unknown', "pull access denied for acme/app, repository does not exist or may require 'docker login'", 'invalid reference format', 'No such container: web', 'Error response from daemon: No such image: app:1', 'unauthorized: authentication required', 'pods "web" not found', 'pods is forbidden: User "app" cannot list resource "pods" in API group "" in the namespace "default"',
      'error validating data: unknown field "spec.replica" in io.k8s.api.apps.v1.DeploymentSpec', 'the server could not find the requested resource', 'the server doesn\'t have a resource type "pod5"', 'You must be logged in to the server (Unauthorized)', 'exceeded quota: compute, requested: cpu=2, used: cpu=9, limited: cpu=10', 'unknown flag: --detatch', 'no matches for kind "Ingres" in version "networking.k8s.io/v1"', 'deployments.apps "web" already exists',
    ],
  }),
  // RFC 5321 and 3463, postfix, nodemailer, without the reply's number
  ...said('smtp', {
    transient: [
      'Service not available, closing transmission channel', 'Requested action aborted: local error in processing', 'Requested action not taken: insufficient system storage', 'Greylisted, please come back later', 'Temporary lookup failure', 'Temporary local problem - please try later', 'Connection closed unexpectedly', 'Greeting never received',
      "The recipient's server is not responding", 'The connection was dropped during the transmission', 'Routing server failure', 'delivery temporarily suspended: lost connection with mx.example.com while receiving the initial server greeting',
    ],
    permanent: [
      'Requested action not taken: mailbox name not allowed', 'Syntax error, command unrecognized', 'Syntax error in parameters or arguments', 'Command parameter not implemented', 'Recipient address rejected: User unknown in virtual mailbox table', 'Bad destination mailbox address syntax', 'Invalid login: Username and Password not accepted', 'Authentication Required',
      'No recipients defined', 'Relay access denied', 'Mailbox does not exist',
    ],
  }),
  // git/git, npm/cli, modelcontextprotocol/servers and sdks
  ...said('developer tools', {
    transient: [
      'The remote end hung up unexpectedly', 'early EOF', 'RPC failed; curl 56 GnuTLS recv error (-54): Error in the pull function.', 'unable to access \'https://github.com/a/b.git/\': Could not resolve host: github.com', 'fetch-pack: unexpected disconnect while reading sideband packet', 'ssh: connect to host github.com port 22: Connection timed out',
      'kex_exchange_identification: Connection closed by remote host', 'Invalid response body while trying to fetch https://packages.example.com/x: Socket timeout', 'network request to https://packages.example.com/x failed, reason: connect ECONNREFUSED 10.0.0.7:443', "Unable to create '/repo/.git/index.lock': File exists. Another git process seems to be running in this repository",
      'MCP error -32000: Connection closed', 'MCP error -32001: Request timed out', 'Failed to fetch https://example.com: ConnectError(\'All connection attempts failed\')', 'SSE connection not established', 'Not connected', 'Child process exited before responding', 'Navigation failed because page crashed!', 'Target closed',
      'Protocol error (Page.navigate): Session closed. Most likely the page has been closed.', 'net::ERR_NETWORK_CHANGED at https://example.com', 'The browser disconnected while the command was running',
    ],
    permanent: [
      "Authentication failed for 'https://github.com/a/b.git/'", "repository 'https://github.com/a/none.git/' not found", 'Remote branch main2 not found in upstream origin', "pathspec 'nope' did not match any file(s) known to git", "'x y' is not a valid branch name", 'invalid reference: nope', 'Permission denied (publickey).', 'Server does not support --shallow-since',
      "404 Not Found - GET https://packages.example.com/nope - Not found", 'Missing script: "biuld"', 'Unsupported URL Type "workspace:": workspace:*', 'Unknown tool: serach', 'MCP error -32602: Invalid arguments for tool search', 'MCP error -32601: Method not found', 'Access denied - path outside allowed directories: /etc/passwd not in /srv/me',
      'Could not find exact match for edit:\nfoo', 'Entity with name Ada not found', 'Invalid timezone: Mars/Olympus', 'Parent directory does not exist: /tmp/none', 'URL is required', 'No element found for selector: #buy', "Unknown key: 'Entr'", 'Not a git repository (or any of the parent directories): .git', 'This operation is not supported on your plan',
    ],
  }),
  // mongodb, rabbitmq (amqplib), sqlite, nats
  ...said('stores and queues', {
    transient: [
      'connection 4 to 10.0.0.7:27017 closed', 'Server selection timed out after 30000 ms', 'not primary', 'operation was interrupted because the server is shutting down', 'WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.', 'connection pool for 10.0.0.7:27017 was cleared because another operation failed with: "connection timed out"',
      'node is recovering', 'database is locked', 'disk I/O error', 'Unexpected close', 'Heartbeat timeout', 'Socket closed abruptly during opening handshake', 'Channel closed by server: 320 (CONNECTION-FORCED) with message "CONNECTION_FORCED - broker forced connection closure with reason \'shutdown\'"', 'nats: no responders available for request', 'nats: stale connection',
      'The primary is stepping down', 'interrupted at shutdown',
    ],
    permanent: [
      'E11000 duplicate key error collection: shop.users index: email_1 dup key: { email: "a@b" }', 'Document failed validation', 'unknown operator: $gtt', 'Authentication failed.', 'not authorized on shop to execute command { find: "users" }', 'no such table: orders', 'UNIQUE constraint failed: users.email', 'near "FORM": syntax error', 'datatype mismatch',
      'attempt to write a readonly database', "Channel closed by server: 404 (NOT-FOUND) with message \"NOT_FOUND - no queue 'jobs' in vhost '/'\"", 'nats: authorization violation', 'nats: maximum payload exceeded', 'nats: invalid subject', 'Unsupported OP_QUERY command: insert.',
    ],
  }),
  // strerror of glibc, WHATWG fetch, browsers, Apple's Foundation
  ...said('platforms', {
    transient: [
      'No buffer space available', 'Resource temporarily unavailable', 'Device or resource busy', 'Too many open files', 'Software caused connection abort', 'Interrupted system call', 'Input/output error', 'Network is down', 'Network dropped connection on reset', 'Cannot allocate memory', 'No locks available', 'Stale file handle', 'Resource deadlock avoided',
      'A server with the specified hostname could not be found.', 'The network connection was lost.', 'The Internet connection appears to be offline.', 'The request timed out.', 'Failed to fetch', 'Load failed', 'NetworkError when attempting to fetch resource.', 'Text file busy', 'Communication error on send', 'Protocol error', 'Transport endpoint is not connected',
    ],
    permanent: [
      'No such file or directory', 'Permission denied', 'Invalid argument', 'Is a directory', 'File name too long', 'Function not implemented', 'Operation not supported', 'Argument list too long', 'Disk quota exceeded', 'Bad file descriptor', 'Operation not permitted', 'Protocol not supported', 'Not a directory', 'unsupported URL',
    ],
  }),
];
