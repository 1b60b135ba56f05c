/** Fields that a client writes about a conversation: its title, metadata and workdir. */
import { z } from 'zod'

export const Title = z.string().min(1).max(200)
/** It is in memory for as long as the conversation is open. */
const MAX_METADATA_BYTES = 64 * 1024
export const Metadata = z.record(z.string(), z.unknown()).describe('Any JSON object of the client, stored unchanged.')
export const NewMetadata = Metadata.refine(
  (metadata) => new TextEncoder().encode(JSON.stringify(metadata)).length <= MAX_METADATA_BYTES,
  {
    error: 'has more than 64 KiB as JSON; store it elsewhere and put a reference here',
  },
).describe('Any JSON object of the client, stored unchanged. At most 64 KiB as JSON.')
export const Workdir = z
  .string()
  .min(1)
  .max(4096)
  .describe(
    'Absolute, or relative to OPENHANDS_WORKDIR_BASE. Default: a new directory that is removed with the conversation.',
  )

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
