/** The operations on the work of a conversation: commands, files, secrets, tasks and callbacks. */
import type {
  Callback,
  CallbackPage,
  CreateCallback,
  CreatedCallback,
  DeliveryPage,
  ListDeliveries,
  Redeliver,
  RotateCallbackSecret,
  TestOutcome,
  UpdateCallback,
  UpdatedCallback,
} from '../../contract/callback.ts'
import type {
  Command,
  CommandInput,
  CommandOutcome,
  CommandOutput,
  CommandPage,
  EndedProcesses,
  EndProcesses,
  ListCommands,
  Processes,
  ReadOutput,
  RunCommand,
  ShellSessions,
} from '../../contract/values/command.ts'
import type { DiffPage, GetDiff } from '../../contract/diff.ts'
import type {
  CountFiles,
  DeleteFile,
  FileCount,
  FileInfo,
  FileMatches,
  FilePage,
  GetFile,
  GetFileAt,
  ListFiles,
  MadeDirectory,
  SearchFiles,
  UploadedFiles,
  UploadFiles,
  WrittenFile,
} from '../../contract/files.ts'
import type { GetGitDiff, GetGitFile, GetGitStatus, GitDiff, GitStatus } from '../../contract/git.ts'
import type { PutSecrets, SecretNames } from '../../contract/secret.ts'
import type { ListTasks, PostTask, Task, TaskPage } from '../../contract/values/task.ts'
import { get, Operation, post, postOnce, put, remove } from './operation.ts'

const COMMANDS = {
  /** Returns `CommandStarted` with `background`, otherwise `CommandOutcome`. */
  runCommand: postOnce('/conversations/{id}/commands').sends<typeof RunCommand>().returns<typeof CommandOutcome>(),
  listCommands: get('/conversations/{id}/commands').filters<typeof ListCommands>().returns<typeof CommandPage>(),
  getCommand: get('/conversations/{id}/commands/{command_id}').returns<typeof Command>(),
  endCommand: remove('/conversations/{id}/commands/{command_id}'),
  readCommandOutput: get('/conversations/{id}/commands/{command_id}/output')
    .filters<typeof ReadOutput>()
    .returns<typeof CommandOutput>(),
  writeCommandInput: post('/conversations/{id}/commands/{command_id}/input').sends<typeof CommandInput>(),

  listProcesses: get('/conversations/{id}/processes').returns<typeof Processes>(),
  endProcesses: remove('/conversations/{id}/processes').filters<typeof EndProcesses>().returns<typeof EndedProcesses>(),
  endProcess: remove('/conversations/{id}/processes/{pid}').returns<typeof EndedProcesses>(),

  listShellSessions: get('/conversations/{id}/shell-sessions').returns<typeof ShellSessions>(),
  endShellSession: remove('/conversations/{id}/shell-sessions/{session_id}'),
}

const FILES = {
  listFiles: get('/conversations/{id}/files').filters<typeof ListFiles>().returns<typeof FilePage>(),
  makeDirectory: postOnce('/conversations/{id}/dirs/{path}').returns<typeof MadeDirectory>(),
  getFile: get('/conversations/{id}/files/{path}').filters<typeof GetFileAt>(),
  headFile: new Operation('HEAD', '/conversations/{id}/files/{path}').filters<typeof GetFile>(),
  deleteFile: remove('/conversations/{id}/files/{path}').filters<typeof DeleteFile>(),
  putFile: put('/conversations/{id}/files/{path}').returns<typeof WrittenFile>(),
  getFileInfo: get('/conversations/{id}/file-info/{path}').returns<typeof FileInfo>(),
  searchFiles: get('/conversations/{id}/file-search').filters<typeof SearchFiles>().returns<typeof FileMatches>(),
  getDiff: get('/conversations/{id}/diff').filters<typeof GetDiff>().returns<typeof DiffPage>(),
  deleteSnapshots: remove('/conversations/{id}/snapshots'),
  countFiles: get('/conversations/{id}/file-count').filters<typeof CountFiles>().returns<typeof FileCount>(),
  getGitStatus: get('/conversations/{id}/git/status').filters<typeof GetGitStatus>().returns<typeof GitStatus>(),
  getGitDiff: get('/conversations/{id}/git/diff').filters<typeof GetGitDiff>().returns<typeof GitDiff>(),
  getGitFile: get('/conversations/{id}/git/file').filters<typeof GetGitFile>(),
  uploadFiles: postOnce('/conversations/{id}/files/upload')
    .filters<typeof UploadFiles>()
    .returns<typeof UploadedFiles>(),
}

const CALLBACKS = {
  createCallback: postOnce('/conversations/{id}/callbacks')
    .sends<typeof CreateCallback>()
    .returns<typeof CreatedCallback>(),
  listCallbacks: get('/conversations/{id}/callbacks').returns<typeof CallbackPage>(),
  getCallback: get('/conversations/{id}/callbacks/{callback_id}').returns<typeof Callback>(),
  updateCallback: put('/conversations/{id}/callbacks/{callback_id}')
    .sends<typeof UpdateCallback>()
    .returns<typeof UpdatedCallback>(),
  deleteCallback: remove('/conversations/{id}/callbacks/{callback_id}'),
  rotateCallbackSecret: post('/conversations/{id}/callbacks/{callback_id}/rotate-secret')
    .sends<typeof RotateCallbackSecret>()
    .returns<typeof CreatedCallback>(),
  listDeliveries: get('/conversations/{id}/callbacks/{callback_id}/deliveries')
    .filters<typeof ListDeliveries>()
    .returns<typeof DeliveryPage>(),
  testCallback: post('/conversations/{id}/callbacks/{callback_id}/test').returns<typeof TestOutcome>(),
  redeliver: post('/conversations/{id}/callbacks/{callback_id}/redeliver')
    .sends<typeof Redeliver>()
    .returns<typeof Callback>(),
}

export const WORK_OPERATIONS = {
  ...COMMANDS,
  ...FILES,
  ...CALLBACKS,

  putSecrets: put('/conversations/{id}/secrets').sends<typeof PutSecrets>().returns<typeof SecretNames>(),
  listSecrets: get('/conversations/{id}/secrets').returns<typeof SecretNames>(),
  deleteSecret: remove('/conversations/{id}/secrets/{key}'),

  postTask: postOnce('/conversations/{id}/tasks').sends<typeof PostTask>().returns<typeof Task>(),
  listTasks: get('/conversations/{id}/tasks').filters<typeof ListTasks>().returns<typeof TaskPage>(),
  getTask: get('/conversations/{id}/tasks/{task_id}').returns<typeof Task>(),
  cancelTask: remove('/conversations/{id}/tasks/{task_id}').returns<typeof Task>(),
}
