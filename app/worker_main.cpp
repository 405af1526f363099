// cutaway-worker: runs graphs on behalf of a session, on this machine's processor or GPU, so that a crash there is only
// an error here.
#include "engine/runtime/worker.h"

int main(int argc, char** argv) { return cutaway::workerMain(argc, argv); }
