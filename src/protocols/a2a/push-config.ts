/** The address at which a client wants to learn of a task, as it is sent. */
import { z } from 'zod'

const OptionalText = z
  .string()
  .max(2000)
  .nullish()
  .transform((text) => (text === null || text === '' ? undefined : text))

export const PushConfig = z.looseObject({
  id: OptionalText,
  url: z.string().min(1),
  token: OptionalText,
  authentication: z.looseObject({ scheme: z.string().min(1).max(100), credentials: OptionalText }).nullish(),
})
export type PushConfig = z.infer<typeof PushConfig>
