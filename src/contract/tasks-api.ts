/** How tasks are listed. */
import { z } from 'zod'
import { PageLimit } from './conversation.ts'
import { TaskStatus } from './task.ts'

export const ListTasks = z.strictObject({
  status: TaskStatus.optional(),
  order: z.enum(['asc', 'desc']).default('desc').describe('Sort by creation time.'),
  limit: PageLimit,
  page_id: z
    .string()
    .optional()
    .describe(
      '`next_page_id` of the previous page. A page can have fewer items than `limit` and still have a next page.',
    ),
})
export type ListTasks = z.infer<typeof ListTasks>
