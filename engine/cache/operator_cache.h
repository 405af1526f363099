#pragma once
// The cache of operators that were compiled one by one, as a folder that PyTorch's has the form of:
//   ROOT/aoti_eager/NAMESPACE/DEVICE/OP.json       the records (operator_records.h)
//   ROOT/aoti_eager/NAMESPACE/DEVICE/lib/KEY/      what a record names: a sealed folder with a library
//   ROOT/locks/                                    one lock a file of records, where PyTorch's loader has it, too, and
//                                                  one a library while it is made
// A file of records is replaced as a whole, so readers take no lock.
#include <functional>

#include "cutaway/jobs.h"
#include "cutaway/result.h"
#include "engine/cache/operator_records.h"

namespace cutaway {

struct OperatorPlace {
    std::string root, space, device;
    std::string op;  // "add.Tensor"; of an overload without a name "relu"

    std::string folder() const { return root + "/aoti_eager/" + space + "/" + device; }
    std::string file() const { return folder() + "/" + op + ".json"; }
    std::string library(const std::string& key) const { return folder() + "/lib/" + key; }
    std::string lock() const { return locks() + "/" + op + ".lock"; }
    std::string lock(const std::string& key) const { return locks() + "/" + key + ".lock"; }
    std::string locks() const { return root + "/locks"; }
};

/// Makes the folders. Errors: they cannot be made.
Result<void> makeFolders(const OperatorPlace& place);
/// The places of all files of records below the root, by path.
std::vector<OperatorPlace> operatorPlaces(const std::string& root);

/// The records of a place. No file: none. A record whose library is missing drops itself, with a remark.
std::vector<OperatorRecord> readOperatorRecords(const OperatorPlace& place, std::vector<std::string>& remarks);
/// Reads, changes and writes the records under their lock, unless `change` says that nothing is to be written. What was
/// damaged or has lost its library goes on this occasion. Errors: the lock is held for 600 s, the file cannot be
/// written.
Result<void> changeOperatorRecords(const OperatorPlace& place,
                                   const std::function<bool(std::vector<OperatorRecord>&)>& change,
                                   std::vector<std::string>& remarks, const Progress& progress = {});

}  // namespace cutaway
