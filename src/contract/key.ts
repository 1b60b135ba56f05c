/** API keys and stream tickets on the wire: credentials with fewer permissions than the master key. */
import { z } from 'zod'
import { ConversationId } from './conversation.ts'
import { ProfileName } from './conversations/given-fields.ts'

export const Scope = z
  .enum(['read', 'write', 'approve', 'files', 'commands', 'secrets', 'admin'])
  .meta({ id: 'Scope' })
  .describe(
    '`read`: conversations, events, tasks and streams. `write`: create, configure and delete conversations, messages, runs, tasks and callbacks. `approve`: decide about tool calls and hosts. `files`: read and write files of the workdir. `commands`: run commands and manage processes. `secrets`: set and delete secrets. `admin`: everything, and keys and metrics.',
  )
export type Scope = z.infer<typeof Scope>

const KeyName = z.string().min(1).max(100).describe('For people: shown in lists and in the audit log.')
const KeyUserId = z.string().min(1).max(200)

const MAX_CONVERSATIONS = 200
const MAX_PROFILES = 50

/** The restrictions of a key. Absent: all conversations. */
const Limits = {
  conversations: z
    .array(ConversationId)
    .min(1)
    .max(MAX_CONVERSATIONS)
    .optional()
    .describe('Only these conversations. Such a key cannot create conversations.'),
  user_id: KeyUserId.optional().describe(
    'Only the conversations with this `user_id`. Conversations that the key creates get it.',
  ),
  profiles: z
    .array(ProfileName)
    .min(1)
    .max(MAX_PROFILES)
    .optional()
    .describe(
      'Only conversations of these profiles. Such a key names one of them to create a conversation, and cannot change what the profile says.',
    ),
}

export const CreateKey = z
  .strictObject({
    name: KeyName,
    scopes: z.array(Scope).min(1).max(Scope.options.length),
    ...Limits,
    expires_at: z.iso.datetime({ offset: true }).optional().describe('RFC 3339. Default: the key does not expire.'),
  })
  .refine(({ scopes, conversations, user_id }) => !scopes.includes('admin') || !(conversations ?? user_id), {
    path: ['scopes'],
    error: 'a key with the scope admin cannot be limited to conversations or a user; leave out one of them',
  })
  .refine(({ scopes, profiles }) => !profiles || !(scopes.includes('admin') || scopes.includes('secrets')), {
    path: ['scopes'],
    error: 'a key that is limited to profiles cannot have the scopes admin and secrets; leave out one of them',
  })
  .meta({
    id: 'CreateKey',
    examples: [{ name: 'dashboard', scopes: ['read', 'approve'], user_id: 'user-17' }],
  })
export type CreateKey = z.infer<typeof CreateKey>

export const ApiKey = z
  .object({
    id: z.uuid(),
    name: z.string(),
    prefix: z.string().describe('The first characters of the key, to recognize it by.'),
    scopes: z.array(Scope),
    conversations: z.array(z.uuid()).optional(),
    user_id: z.string().optional(),
    profiles: z.array(z.string()).optional(),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().optional(),
    last_used_at: z.iso.datetime().optional().describe('Exact to about a minute.'),
    previous_valid_until: z.iso
      .datetime()
      .optional()
      .describe('After a rotation: until then the previous key is valid too.'),
  })
  .meta({
    id: 'ApiKey',
    examples: [
      {
        id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        name: 'dashboard',
        prefix: 'ask_Zr8k',
        scopes: ['read', 'approve'],
        user_id: 'user-17',
        created_at: '2026-01-31T12:00:00.000Z',
      },
    ],
  })
export type ApiKey = z.infer<typeof ApiKey>

export const CreatedKey = ApiKey.extend({
  key: z.string().describe('The key. It is returned only this once; the server keeps a hash of it.'),
}).meta({
  id: 'CreatedKey',
  examples: [
    {
      id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
      name: 'dashboard',
      prefix: 'ask_Zr8k',
      scopes: ['read', 'approve'],
      user_id: 'user-17',
      created_at: '2026-01-31T12:00:00.000Z',
      key: 'ask_Zr8kexample',
    },
  ],
})
export type CreatedKey = z.infer<typeof CreatedKey>

export const ApiKeyList = z.object({ items: z.array(ApiKey) }).meta({ id: 'ApiKeyList' })
export type ApiKeyList = z.infer<typeof ApiKeyList>

export const Me = z
  .object({
    kind: z.enum(['master', 'api_key']),
    key_id: z.uuid().optional(),
    name: z.string().optional().describe('The name of the API key.'),
    scopes: z.array(Scope).describe('All that the key allows; with `admin`, all scopes.'),
    conversations: z.array(z.uuid()).optional().describe('Only these conversations. Absent: all.'),
    user_id: z.string().optional().describe('Only the conversations with this `user_id`. Absent: all.'),
    profiles: z.array(z.string()).optional().describe('Only conversations of these profiles. Absent: all.'),
    login_id: z.uuid().optional().describe('The login of the request, for `DELETE /logins/{id}`.'),
  })
  .meta({
    id: 'Me',
    examples: [
      {
        kind: 'api_key',
        key_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1',
        name: 'dashboard',
        scopes: ['read', 'approve'],
        user_id: 'user-17',
      },
    ],
  })
export type Me = z.infer<typeof Me>

const MAX_OVERLAP_SECONDS = 30 * 24 * 3600

export const RotateKey = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(MAX_OVERLAP_SECONDS)
      .default(3600)
      .describe('How long the previous key stays valid.'),
  })
  .meta({ id: 'RotateKey', examples: [{ overlap_seconds: 3600 }] })
export type RotateKey = z.infer<typeof RotateKey>

/** Longer paths are refused as unsafe. */
const MAX_FILE_PATH_CHARS = 4096

export const CreateStreamTicket = z
  .strictObject({
    conversation_id: ConversationId.optional(),
    firehose: z.literal(true).optional(),
    file: z
      .string()
      .min(1)
      .max(MAX_FILE_PATH_CHARS)
      .optional()
      .describe(
        'A path below the workdir of `conversation_id`: the ticket downloads this file or directory, and opens no stream. The key needs the scopes `read` and `files`.',
      ),
    scopes: z
      .array(z.literal('read'))
      .length(1)
      .default(['read'])
      .describe('What the ticket of a stream allows. Only `read` exists.'),
  })
  .refine(({ conversation_id, firehose }) => (conversation_id === undefined) !== (firehose === undefined), {
    error: 'needs either conversation_id or firehose: true',
  })
  .refine(({ file, firehose }) => file === undefined || firehose === undefined, {
    path: ['file'],
    error: 'needs the conversation_id that the file belongs to',
  })
  .meta({
    id: 'CreateStreamTicket',
    examples: [
      { conversation_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1' },
      { conversation_id: '0199a1f0-5c3e-7d12-9b1a-2f6d8c40a7e1', file: 'dist/report.zip' },
      { firehose: true },
    ],
  })
export type CreateStreamTicket = z.infer<typeof CreateStreamTicket>

export const StreamTicket = z
  .object({
    ticket: z.string().describe('For `?ticket=` of one stream or download. It can be used once.'),
    expires_at: z.iso.datetime().describe('The stream or download must begin before then; it may last longer.'),
  })
  .meta({ id: 'StreamTicket', examples: [{ ticket: 'ast_example', expires_at: '2026-01-31T12:00:30.000Z' }] })
export type StreamTicket = z.infer<typeof StreamTicket>

/** The query parameter of streams and downloads. Not named `…token` or `…key`, which are refused in URLs. */
export const Ticket = z
  .string()
  .max(200)
  .optional()
  .describe(
    'From `POST /stream-tickets`, for browsers, whose `EventSource`, `WebSocket` and links cannot send a header.',
  )
