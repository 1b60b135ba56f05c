/** Profiles on the wire: named parts of create requests. */
import { z } from 'zod'
import { ProfileName } from './conversations/given-fields.ts'
import { CreateFields } from './conversation.ts'
import { ShownMcp } from './mcp/mcp-server.ts'
import { LlmConfig } from './values/llm-config.ts'

/** The size of a profile as JSON. */
const MAX_PROFILE_BYTES = 256 * 1024

const Description = z.string().max(1000).optional().describe('For people, and for clients that choose a profile.')

/** What belongs to one conversation, or to one request. */
const ConversationFields = CreateFields.omit({
  id: true,
  profile: true,
  external_id: true,
  user_id: true,
  initial_message: true,
  history: true,
  run: true,
  wait: true,
  timeout: true,
})

export const PutProfile = ConversationFields.extend({ description: Description })
  .refine((profile) => new TextEncoder().encode(JSON.stringify(profile)).length <= MAX_PROFILE_BYTES, {
    error: 'has more than 256 KiB as JSON',
  })
  .meta({
    id: 'PutProfile',
    examples: [{ description: 'Reviews a change', tools: ['Bash'], permission_mode: 'plan' }],
  })
export type PutProfile = z.infer<typeof PutProfile>

const ChangeTimes = {
  created_at: z.iso.datetime().optional().describe('Absent: the profile `default` that nobody has stored.'),
  updated_at: z.iso.datetime().optional(),
}

export const Profile = ConversationFields.extend({
  name: ProfileName,
  description: Description,
  ...ChangeTimes,
  llm_config: LlmConfig.optional().describe('Secret values are masked.'),
  mcp: ShownMcp.optional().describe('Credentials are masked.'),
}).meta({
  id: 'Profile',
  examples: [
    {
      name: 'reviewer',
      description: 'Reviews a change',
      tools: ['Bash'],
      permission_mode: 'plan',
      created_at: '2026-01-31T12:00:00.000Z',
      updated_at: '2026-01-31T12:00:00.000Z',
    },
  ],
})
export type Profile = z.infer<typeof Profile>

export const ProfileList = z
  .object({ items: z.array(z.object({ name: ProfileName, description: Description, ...ChangeTimes })) })
  .meta({
    id: 'ProfileList',
    examples: [{ items: [{ name: 'default', description: 'The settings of the server.' }] }],
  })
export type ProfileList = z.infer<typeof ProfileList>
