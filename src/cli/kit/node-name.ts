import { nodeIdShape } from '#wire/core/shapes.ts'
import { usageFailure } from './failure.ts'

/** Checked before it is sent: the plane would only say that the request does not fit a schema. */
export const nodeName = (text: string): string => {
  if (new RegExp(nodeIdShape).test(text)) return text
  throw usageFailure(
    `${text} is not a name for a node.`,
    'Use lower-case letters, digits, dots, dashes and underscores, a letter or digit first and last, at most 63',
  )
}
