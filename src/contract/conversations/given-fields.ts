/** Fields that a client writes about a conversation: its title, labels, metadata, workdir and variables. */
import { z } from 'zod'
import { EnvironmentVariables } from '../values/environment-variables.ts'

export const Title = z.string().min(1).max(200).describe('The title of the conversation.')
const UserId = z
  .string()
  .max(200)
  .describe('Whose conversation it is: a filter of lists, and what API keys can be limited to.')

export const ProfileName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'must have 1 to 100 letters, digits, dots, dashes and underscores')

const nameText = z.string().optional()

/** The settings that connect a conversation with what the client or an administrator has. */
export const CHOSEN_NAMES = {
  user_id: { create: UserId.optional(), stored: nameText, shown: nameText, from: 'text' },
  profile: {
    create: ProfileName.optional().describe(
      'The profile whose fields it gets. A field of the request replaces that of the profile as a whole. Default: none.',
    ),
    stored: nameText,
    shown: nameText,
    from: 'sent',
  },
  external_id: {
    create: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe(
        'An id of the client, unique among the conversations of its `user_id`, or among those without one. If there is a conversation with it, that one is returned with status 200, unchanged, and nothing of the request is used.',
      ),
    stored: nameText,
    shown: nameText,
    from: 'text',
  },
} as const

export const MAX_LABELS = 20
/** A label may have commas and spaces. */
export const Label = z.string().min(1).max(64)
export const Labels = z
  .array(Label)
  .max(MAX_LABELS)
  .refine((labels) => new Set(labels).size === labels.length, { error: 'has a label twice' })
  .meta({ uniqueItems: true })
  .describe(`Texts to find it by: up to ${MAX_LABELS}, each once, of up to 64 characters.`)
export const Archived = z.boolean().describe('Out of the way: `archived=false` leaves it out of lists. It still works.')
/** It is in memory for as long as the conversation is open. */
const MAX_METADATA_BYTES = 64 * 1024
export const Metadata = z.record(z.string(), z.unknown()).describe('Any JSON object of the client.')
export const NewMetadata = Metadata.refine(
  (metadata) => new TextEncoder().encode(JSON.stringify(metadata)).length <= MAX_METADATA_BYTES,
  {
    error: 'has more than 64 KiB as JSON; store it elsewhere and put a reference here',
  },
).describe('Any JSON object of the client. At most 64 KiB as JSON. Lists can be filtered by its fields.')
export const Workdir = z
  .string()
  .min(1)
  .max(4096)
  .describe(
    'Absolute, or relative to OPENHANDS_WORKDIR_BASE. Default: a new directory that is removed with the conversation.',
  )

export const Env = EnvironmentVariables.describe(
  'Environment variables of the commands of the conversation. They are stored and shown as they are: put what nobody may read into `secrets`, which take precedence.',
)

/** Each of them costs a little at every decision about a path. */
const MAX_ADDITIONAL_DIRECTORIES = 10
const Directories = z
  .array(z.string().startsWith('/', { error: 'must be an absolute path' }).max(4096))
  .max(MAX_ADDITIONAL_DIRECTORIES)
export const MoreDirectories = {
  create: Directories.optional().describe(
    'Absolute paths of existing directories that the agent works in besides `workdir`. They are never created, copied or removed.',
  ),
  update: Directories.optional().describe(
    'Replaces all; `[]` removes them. Can change only while the agent is not running. Needs the scope `approve`.',
  ),
}

/** How a title is written that the client does not send. */
export const TitleWriting = {
  generate_title: z
    .boolean()
    .optional()
    .describe(
      'Whether a model writes the title after the first answer, unless the conversation has one. It delays no run. Default: false.',
    ),
  title_model: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('The model that writes the title, at the endpoint of `llm_config`. Default: the same model.'),
}

const checkpointing = z.boolean().optional()

export const FileCheckpointing = {
  create: checkpointing.describe(
    'Whether snapshots of the workdir are taken before turns that may change files, and at the end of such a run. Default: false.',
  ),
  update: checkpointing,
  stored: checkpointing,
  shown: checkpointing,
}
