/** What lists have in common. */
import { z } from 'zod'

export const PageLimit = z.coerce.number().int().min(1).max(1000).default(100)

export const Count = z.object({ count: z.int().nonnegative() }).meta({ id: 'Count', examples: [{ count: 42 }] })
