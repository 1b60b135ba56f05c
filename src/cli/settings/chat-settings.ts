/** How the chat looks and behaves: the object `chat` of the settings file. */
import { z } from 'zod'

export const ChatSettings = z
  .strictObject({
    /** How the chat calls a person who has pressed no key for a while. */
    notify: z.enum(['bell', 'osc9', 'off']),
    terminal_title: z.boolean(),
    /** Names that `/model` offers. */
    models: z.array(z.string().min(1).max(500)).max(50),
    theme: z.enum(['default', 'bright', 'plain']),
  })
  .partial()
export type ChatSettings = z.infer<typeof ChatSettings>
