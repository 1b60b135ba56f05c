/** What the document says beyond the summaries of the routes: one paragraph for each operation, by its id. A test wants one for each. */
import { REQUEST_KINDS, REQUESTS } from '../../src/contract/requests/request-kinds.ts'

export const DESCRIPTIONS: Readonly<Record<string, string>> = {
  me: 'Returns the name, the scopes and the limits of the key of the request. Each key may ask.',
  createKey: 'Creates a key with scopes of its creator. The response contains the key, which is returned only once.',
  listKeys: 'Returns the keys without their values.',
  getKey: 'Returns one key without its value.',
  deleteKey: 'Revokes the key at once, also for streams that are open.',
  rotateKey: 'Creates a new value for the key. The previous value stays valid for the overlap.',
  listProfiles:
    'Returns the names and descriptions of the profiles that the key may use. Without a stored profile there is `default`: the settings of the server.',
  getProfile: 'Returns what the profile says, with masked secrets.',
  putProfile:
    'Stores the fields of a create request under a name. They replace those of a former profile of the name; conversations that were made from it are not changed.',
  deleteProfile: 'Deletes the profile. Keys that are limited to it can create nothing with it.',
  createLogin:
    'Logs a browser in. The response sets a cookie and has a value; each request needs the cookie and the value as the header `X-Login`. Requests that change something also need `Sec-Fetch-Site: same-origin`, which browsers send.',
  listLogins: 'Returns the logins of your key that may do no more than you; with `admin`, all.',
  deleteLogin:
    'Ends the login at once, also for streams that are open. For your own login, the browser also removes what the page has stored.',
  createLoginCode: 'Returns a code that logs a browser in within 60 seconds, once, with the key of this request.',
  createStreamTicket:
    'Returns a ticket for the query of one stream, socket or download (`file`), for browsers that cannot send a header.',
  alive: 'Returns 200 as long as the process can answer. It needs no key and looks at nothing else.',
  ready: 'Returns 200 when requests are accepted, and 503 while the server starts, stops, or cannot write its data.',
  info: 'Returns what this server is and allows. The values do not change while it runs.',
  activity:
    'Returns how many runs work or wait, and how many streams are open, of the whole server; in a cluster, of the instance that answers. A key that is limited to conversations, a user or profiles gets 403.',
  listModels:
    'Returns what the server knows about models, by provider and name. A key that is limited to some conversations gets the models of the 1000 newest of them.',
  metrics: 'Returns counters and gauges of the whole server. They contain no ids and no texts of conversations.',
  openapi: 'Returns this document. It needs no key.',
  asyncapi: 'Returns the description of WebSockets, event streams and deliveries to callbacks. It needs no key.',
  searchEvents:
    'Finds messages, answers, and the beginning and end of inputs and outputs of tools, in conversations that the key may read, the newest first. What was rewound or withdrawn is left out. What was stored since the last search is indexed first.',
  createConversation:
    'Stores a new conversation. The agent does not start before a message with `run`, or a run. `warnings` lists fields of `llm_config` that this server does not use.',
  listConversations:
    'Returns conversations by the time of their creation or of their last change. All filters must match.',
  listConversationSummaries:
    'Returns the same list as short rows, from memory: what each conversation is about, what its agent does now and what waits.',
  countConversations:
    'Returns how many conversations match all filters, with `by` also of each status, label, model or user.',
  getConversation: 'Returns the configuration, the status and the usage so far. Secret values are masked.',
  deleteConversation:
    'Ends everything that runs in the conversation and removes its data. Afterwards the id returns 410 and cannot be used again.',
  getAgentInfo: 'Returns the model, the system prompt and the tools with their schemas, as the next run uses them.',
  updateConfig:
    'Changes the fields that are sent and keeps the others. Credentials and limits can change during a run.',
  forkConversation:
    'Creates a conversation with a copy of the events, up to `at_seq`. The body can be empty. The original does not change.',
  postMessage:
    'Stores a message of the user. With `run` it also starts the agent; an agent that runs reads the message in either case.',
  withdrawMessage:
    'Takes a message back, which no model request has from then on, and returns it to be edited. The same request again returns the same. 409 `already_read`: a request to the model has it, which is being answered or was.',
  getDiff:
    'Compares the snapshots of two moments, by `file_checkpointing`: files with the numbers of their lines, and patches. Files that snapshots leave out are not in it.',
  deleteSnapshots:
    'Removes the content of all snapshots from the disk. Their events stay; the next run that changes files begins with a new one.',
  stopSubagent:
    'Ends a subagent in the background, which `SubagentStart` names by its `agent_id`, with its calls. The agent reads that the user stopped it, and other subagents work on. One that has ended is returned as it is.',
  rewindConversation:
    'Takes the conversation back to an earlier event: the log keeps what came after it, and no model request has that any more. A run that is active is paused first; requests, tasks and subagents that are open end. Shells end with their variables. Settings, secrets, costs and budgets stay those of now.',
  runConversation:
    'Starts the agent. Without `wait` the response is 202 at once; with `wait` it is 200 when the run has ended or needs a client. The body can be empty.',
  compactConversation:
    'The model writes a summary, which it reads from then on in place of the earlier events. The log keeps all events. Recent turns, the first message of the user and the task list of the agent are kept.',
  announceAttendance:
    'A chat sends it every 10 seconds. Programs that resume the latest conversation leave one that is `attended` alone. Nothing is stored.',
  endAttendance: 'A chat sends it when it is closed.',
  pauseConversation:
    'Stops the model request at once, and the run at the next safe point. The next run continues there. The body can be empty.',
  setConfirmation: 'Decides whether tool calls that have not begun need an approval.',
  listAllCallbacks:
    'Returns the callbacks of the conversations that the key may see, page by page. Opens no conversation that is closed.',
  getUsage:
    'Counts the conversations that the key may see, also deleted ones. The first request for a time reads the logs of that time; later ones only what is new.',
  listAllRequests:
    'Returns what waits in the conversations that the key may see, page by page. Opens no conversation that is closed.',
  listRequests: 'Returns what waits for a user or a program. The input of a hook is shown to its client only.',
  getRequest: 'Returns one request as the list has it.',
  answerRequest: `The key needs the scope \`approve\` for the kinds ${kindsWith('approve')}, and \`write\` for ${kindsWith('write')}. The same answer again changes nothing; another one is refused. After the last answer that a run waits for, it continues.`,
  listPermissionRules: 'Returns the rules that decide about tool calls, by what they do.',
  replacePermissionRules:
    'Replaces all three lists. The rules apply to calls that have not begun; calls that wait still need a decision.',
  reject:
    'Denies all waiting calls and closes all questions. The agent reads the reason in the next run. The body can be empty.',
  listMcpServers:
    'Returns the MCP servers of the conversation: whether they are connected, and the tools that they offer.',
  finishMcpAuthorization:
    'Takes the code of the authorization server and connects the MCP server. The random `state` takes the place of a key; it is valid once.',
  authorizeMcpServer:
    'Does the same as the callback, for a browser that cannot reach it: send the parameters that the browser was sent back with. Returns the status of the MCP server after that.',
  reconnectMcpServer:
    'Ends the connection to the server and makes a new one. Returns its status after that, at the latest after 5 seconds.',
  listClientHooks:
    'Returns who answers hooks of this conversation besides commands and URLs, and whether it is connected.',
  putClientHooks:
    'Replaces all hooks of this client and keeps those of others. Follow the stream with `hook_client` to be asked.',
  deleteClientHooks: 'The client is not asked any more. Requests to it that wait have failed.',
  runCommand:
    'Runs a command in a shell of the conversation. The response is 200 with the outcome, or 202 with `background`.',
  listCommands: 'Returns the commands of clients, newest first. The oldest are forgotten.',
  getCommand: 'Returns the state and the outcome of one command, without its output.',
  endCommand: 'Ends the command and its processes. The response is sent when they have ended.',
  readCommandOutput: 'Returns a part of the output by byte offset, also while the command runs.',
  writeCommandInput: 'Writes to the standard input of a command that keeps it open.',
  listProcesses: 'Returns the processes that run in the conversation, of the agent and of clients.',
  endProcesses: 'Ends all processes whose command line contains the pattern, with their children.',
  endProcess: 'Ends one process of the conversation with its children.',
  listShellSessions: 'Returns the shells of the conversation with their state and working directory.',
  endShellSession: 'Ends the shell with its processes, and discards its directory, exports and functions.',
  putSecrets: 'Adds or replaces secrets. Commands that start afterwards have them as environment variables.',
  listSecrets: 'Returns the names of the secrets. Values are never returned.',
  deleteSecret: 'Deletes one secret. Commands that start afterwards do not have it.',
  listFiles: 'Returns the entries of one directory, sorted by name, or the directory as an archive.',
  getFile:
    'Returns the content of a file. It supports ranges and conditional requests. A directory needs `format=tar.gz`.',
  headFile: 'Returns the headers that a download of the file would have, without its content.',
  deleteFile: 'Deletes a file or a link. A directory that is not empty needs `recursive`.',
  putFile:
    'Creates or replaces one file atomically with the body as it is. Any content type is accepted, and missing directories are created.',
  getFileInfo: 'Returns size, type, permissions, modification time and entity tag of a file or directory.',
  searchFiles: 'Returns files by name, lines by content, or both. It does not follow links.',
  countFiles: 'Returns the number of files, directories and links below a directory.',
  getGitStatus:
    'Returns the branch, the commit and the changed files of a git repository whose top is the workdir. Nothing that the repository names is executed.',
  getGitDiff:
    'Returns the files that differ from a commit, with patches. A page can have fewer items than `limit`. Files that are not in the index are in the status only.',
  getGitFile: 'Sends the content of a file in a commit unchanged.',
  makeDirectory: 'Creates a directory and its parents. An existing directory is left as it is.',
  uploadFiles: 'Stores all files of the form, or none. Each part of the form needs a filename; its name is not used.',
  postTask:
    'Adds a task to the queue of the conversation. Runs of the agent wait for each other; other tasks run in parallel.',
  listTasks: 'Returns the tasks of the conversation by creation time.',
  getTask: 'Returns one task with its progress, and its result when it has ended.',
  cancelTask: 'Cancels a task that waits or runs. A task that has ended is returned as it is.',
  createReplay:
    'Forks each conversation for each of `llm_configs`, as often as `repeat` says, and lets the agent answer once more, at most 4 forks at a time. The forks reach nobody: calls that need an approval are denied, there is no network, and callbacks, client hooks, client tools and additional directories are left out.',
  listReplays: 'Returns replays by the time of their creation, without their tables.',
  getReplay: 'Returns how far the replay is, and a row for each fork.',
  cancelReplay: 'Ends the forks that work, and begins no more. A replay that has ended is returned as it is.',
  getEventPart:
    'Returns a text, an image or another value of an event as it is: what `max_text` has cut in lists and streams.',
  listEvents: 'Returns events in the order of `seq`. All filters must match.',
  postEvent:
    'Stores an event with a name and data of the client, and sends it to all readers. The agent does not see it.',
  countEvents: 'Returns how many events match all filters.',
  getEvent: 'Returns one event by its id.',
  streamEvents: `Server-Sent Events. \`data\` of each frame is JSON, a \`StreamEvent\`; \`event\` is its \`type\`; \`id\` is the cursor. The stream stays open until the client closes it.${followingWithCurl('conversations/$ID/events/stream?after_seq=0')}`,
  streamFirehose: `Server-Sent Events of all conversations. \`data\` of each frame is JSON, a \`FirehoseStreamEvent\`; \`id\` is the cursor. The same path is a WebSocket.${followingWithCurl('firehose')}`,
  createCallback:
    'Creates a callback. The response contains the signing secret, which is returned only once. Deliveries begin with the next event.',
  listCallbacks: 'Returns the callbacks in the order of their creation. Header values are masked.',
  getCallback: 'Returns one callback with the position that it has reached.',
  rotateCallbackSecret:
    'Returns a new signing secret. Until the overlap is over, deliveries have a signature by each of the two.',
  updateCallback: 'Changes the fields that are sent and keeps the others.',
  deleteCallback: 'Deletes the callback and waits for a delivery that is in progress.',
  listDeliveries: 'Returns the last deliveries of one callback with their outcome, newest first.',
  testCallback: 'Sends a `CallbackTest` to the URL now, and returns how the receiver answered. It is not retried.',
  redeliver: 'Moves the callback back, so that all events from `from_seq` on are delivered again.',
}

/** Parameters that mean the same wherever they occur and whose schema says no more. */
export const PARAMETERS: Readonly<Record<string, string>> = {
  id: 'Id of the conversation.',
  callback_id: 'Id of the callback.',
  command_id: 'Id of the command.',
  event_id: 'Id of the event.',
  message_id: 'Id of the `UserMessage` event.',
  request_id: 'Id of the request that waits for a decision.',
  server_name: 'Name of the MCP server in the configuration.',
  question_id: 'Id of the question that waits for an answer.',
  session_id: 'Name of the shell session.',
  task_id: 'Id of the task.',
  replay_id: 'Id of the replay.',
  agent_id: 'Id of the subagent, as its `SubagentStart` has it.',
  key_id: 'Id of the API key.',
  name: 'Name of the profile.',
  login_id: 'Id of the login.',
  pid: 'Process id, as listed by `processes`.',
  key: 'Name of the secret.',
  status: 'Only items with this status.',
  user_id: 'Only conversations with this `user_id`.',
  source: 'Only events from this source.',
  order: 'Sort order.',
  limit: 'Maximum number of items on a page.',
  stream: 'Standard output or standard error.',
  'if-match': 'Only if the file still has one of these entity tags.',
  'if-none-match': 'Only if the file has none of these entity tags.',
  'if-range': 'Send the range only if the file still has this entity tag or date; otherwise the whole file.',
  'if-modified-since': 'Only if the file was modified after this date (RFC 9110).',
  'if-unmodified-since': 'Only if the file was not modified after this date (RFC 9110).',
}

/** The kinds that need the scope, as words of a sentence. A function, because it is used above. */
function kindsWith(scope: 'approve' | 'write'): string {
  return new Intl.ListFormat('en-GB').format(REQUEST_KINDS.filter((kind) => REQUESTS[kind].scope === scope))
}

/** A description page cannot show a response that has no end, so it says what does. A function, because it is used above. */
function followingWithCurl(path: string): string {
  return `

Follow it in a terminal; \`-N\` shows each event at once:

\`\`\`
curl -N -H "Authorization: Bearer $KEY" "http://127.0.0.1:8000/${path}"
\`\`\`

After a disconnect, continue with the last \`id\`: \`-H "Last-Event-ID: ID"\`. In a browser, use an \`EventSource\` with a \`ticket\` from \`POST /stream-tickets\`.`
}
