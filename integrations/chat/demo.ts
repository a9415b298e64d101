import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { DemoAnswer } from './demoAnswer.ts';
import { DemoFailures } from './demoFailures.ts';

/**
 * The built-in model: an ordinary AI SDK model that needs no account and is deterministic, so that everything can be
 * tried and tested. docs/models.md lists its commands.
 */
export function createDemoModel(): LanguageModelV4 {
  const failures = new DemoFailures();
  return {
    specificationVersion: 'v4',
    provider: 'demo',
    modelId: 'demo',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('The demo model only streams.')),
    async doStream(options) {
      const parts = new DemoAnswer(options, failures).stream();
      // As with a real provider, a failure before the first token is the request's, not the stream's.
      const first = await parts.next();
      let held = first.done ? undefined : first.value;
      const stream = new ReadableStream<LanguageModelV4StreamPart>(
        {
          async pull(controller) {
            if (held !== undefined) {
              controller.enqueue(held);
              held = undefined;
              return;
            }
            const { done, value } = await parts.next();
            if (done) controller.close();
            else controller.enqueue(value);
          },
          cancel: () => void parts.return(),
        },
        { highWaterMark: 0 },
      );
      return { stream };
    },
  };
}
