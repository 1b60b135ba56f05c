import { expect, test } from 'vitest'
import { previewAfter } from '../../src/state/preview.ts'
import type { EventOf } from '../../src/contract/events/event.ts'

const previewOfContent = (content: EventOf<'UserMessage'>['content']): string =>
  previewAfter({ preview: '', previewSeq: 0 }, { type: 'UserMessage', seq: 1, content } as EventOf<'UserMessage'>)
    .preview

test('a preview is the beginning of the texts of a message, without its images', () => {
  const image = { type: 'image' as const, media_type: 'image/png' as const, data: '' }
  const texts = ['one', 'x'.repeat(300)].map((text) => ({ type: 'text' as const, text }))
  expect(previewOfContent([image, ...texts])).toBe(`one ${'x'.repeat(196)}`)
})
